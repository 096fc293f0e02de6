# Prints SMT-LIB problems of three theories for z3; their answers are known: sat, unsat, unsat,
# again and again.
#
#     awk -v count=N -f z3.awk
function random(below) {
    state = (state * 69069 + 12345) % 4294967296
    return int(state / 65536) % below
}

# Jobs on machines, each with a duration: is there a plan that ends in time? Yes.
function print_schedule(jobs, machines, job, machine, other) {
    print "(push)"
    for (job = 0; job < jobs; job++) {
        for (machine = 0; machine < machines; machine++) {
            duration[job, machine] = 1 + random(9)
            printf "(declare-const t-%d-%d Int)\n(assert (<= 0 t-%d-%d %d))\n",
                job, machine, job, machine, 9 * (jobs + machines)
            if (machine > 0) {
                printf "(assert (>= t-%d-%d (+ t-%d-%d %d)))\n",
                    job, machine, job, machine - 1, duration[job, machine - 1]
            }
            for (other = 0; other < job; other++) {
                printf "(assert (or (>= t-%d-%d (+ t-%d-%d %d)) (>= t-%d-%d (+ t-%d-%d %d))))\n",
                    job, machine, other, machine, duration[other, machine],
                    other, machine, job, machine, duration[job, machine]
            }
        }
    }
    print "(check-sat)\n(pop)"
}

# The same elements stored in two orders make different arrays? No.
function print_stores(elements, i, order, swap, position) {
    print "(push)\n(declare-const a (Array Int Int))"
    for (i = 0; i < elements; i++) {
        printf "(declare-const i%d Int)\n(declare-const e%d Int)\n", i, i
        order[i] = i
    }
    for (i = elements - 1; i > 0; i--) {
        position = random(i + 1)
        swap = order[i]
        order[i] = order[position]
        order[position] = swap
    }
    printf "(assert (distinct"
    for (i = 0; i < elements; i++) {
        printf " i%d", i
    }
    print "))\n(define-fun x0 () (Array Int Int) a)\n(define-fun y0 () (Array Int Int) a)"
    for (i = 0; i < elements; i++) {
        printf "(define-fun x%d () (Array Int Int) (store x%d i%d e%d))\n", i + 1, i, i, i
        printf "(define-fun y%d () (Array Int Int) (store y%d i%d e%d))\n",
            i + 1, i, order[i], order[i]
    }
    printf "(assert (not (= x%d y%d)))\n(check-sat)\n(pop)\n", elements, elements
}

# Two ways to compute a square of `bits` bits differ? No.
function print_squares(bits) {
    print "(push)"
    printf "(declare-const x (_ BitVec %d))\n(declare-const y (_ BitVec %d))\n", bits, bits
    print "(assert (not (= (bvmul (bvadd x y) (bvadd x y))"
    print "    (bvadd (bvmul x x) (bvmul y y) (bvmul x y) (bvmul y x)))))"
    print "(check-sat)\n(pop)"
}

BEGIN {
    state = 20
    for (i = 0; i < count; i++) {
        print_schedule(10, 8)
        print_stores(40)
        print_squares(8)
    }
}
