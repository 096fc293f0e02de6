/* The target `heap`: three threads of which one runs at a time, in the order that the input says.
 *
 * A thread exists from its first turn to its exit; the next turn of its place starts another one.
 * In the end one thread frees all blocks, whoever allocated them, all threads exit, and one more
 * comes to purge. */
#include "heap.h"

#include <errno.h>
#include <string.h>

#include "core_check.h"
#include "random.h"
#include "system.h"

enum { LIVE_BYTES_MAX = 6 << 20, INPUT_BYTES_MAX = 12 << 20, LEASE_BYTES = 64 << 10 };

struct crew crew;

static sem_t turn_back;        /* given back to the main thread */
static pthread_key_t late_key; /* older than the core's, so that its destructor comes before */
static void (*task)(struct actor *actor);

/* ---- Turns ----------------------------------------------------------------------------------- */

/* In the second round of destructors the core's own has run: the thread has no heap any more. */
static void on_exit_of_thread(void *argument)
{
    struct actor *actor = argument;

    if (actor->late_rounds++ == 0) {
        pthread_setspecific(late_key, actor);
        return;
    }
    for (unsigned i = 0; i < actor->late_count; i++)
        steps_use_late(actor, actor->late_first + i);
}

static void *act(void *argument)
{
    struct actor *actor = argument;

    pthread_setspecific(late_key, actor);
    actor->seat.errno_place = &errno;
    errno = ERRNO_MARK;
    for (;;) {
        bool leaves;

        task(actor);
        leaves = actor->leaves;
        sem_post(&turn_back);
        if (leaves)
            return NULL;
        while (sem_wait(&actor->turn) != 0)
            continue;
        errno = ERRNO_MARK;
    }
}

/* Lets the actor do `what` and waits for it; also for its end, if it leaves. */
static void give_turn(struct actor *actor, void (*what)(struct actor *))
{
    task = what;
    if (actor->exists) {
        sem_post(&actor->turn);
    } else {
        actor->leaves = false;
        actor->late_rounds = actor->late_count = 0;
        if (pthread_create(&actor->thread, NULL, act, actor) != 0)
            fuzz_failed("cannot start a thread");
        actor->exists = true;
    }
    while (sem_wait(&turn_back) != 0)
        continue;
    if (actor->leaves) {
        pthread_join(actor->thread, NULL);
        actor->exists = false;
    }
}

/* ---- Tasks ----------------------------------------------------------------------------------- */

/* As a process begins: the constructor runs in its first thread. */
static void begin(struct actor *actor)
{
    (void)actor;
    crew.run.hardened = core_start();
}

static void leave(struct actor *actor)
{
    actor->leaves = true;
}

static void free_all(struct actor *actor)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (crew.slots[i].address)
            perform_release(&actor->seat, &crew.slots[i], i & 1);
}

/* What every tier must be able to do after all that has happened. */
static void try_every_tier(struct actor *actor)
{
    static const size_t sizes[] = {1, 2000, 40000, 3000000};

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *block = actor->seat.entries->malloc(sizes[i]);

        FUZZ_CHECK(block != NULL);
        actor->seat.entries->free(block);
    }
    core_stop();
    perform_upkeep(&actor->seat, OP_PURGE);
    leave(actor);
}

/* ---- An input -------------------------------------------------------------------------------- */

/* By what the hardened preset can make pages untouchable, and choose at random. */
static void read_fences(uint8_t kind)
{
    enum { UNMARKED = 1, FEW_MAPPINGS = 2, NO_RANDOM = 7 << 2, MAPPINGS = 600 };

    fuzz_system.unmarked = (kind & UNMARKED) != 0;
    if (kind & FEW_MAPPINGS)
        fuzz_system.mappings = MAPPINGS;
    if ((kind & NO_RANDOM) == NO_RANDOM)
        fuzz_system.random = 0;
}

static void read_header(struct input *input)
{
    /* Each other place of a superslab costs the harness memory for as long as it runs. */
    enum { SECRETS = 4 };
    static const size_t limits[] = {SIZE_MAX, (size_t)1 << 30, (size_t)16 << 20, (size_t)1 << 20};
    uint8_t kind;

    fuzz_system.cpus = 1 + input_byte(input) % 4;
    kind = input_byte(input);
    fuzz_system.address_space_bytes = limits[kind % 4];
    fuzz_system.scattered = kind % 8 >= 4;
    crew.run.seed = input_byte(input);
    fuzz_system.random = random_seeded(crew.run.seed % SECRETS);
    read_fences(input_byte(input));
}

static void start(struct input input)
{
    read_header(&input);
    crew.input = input;
    crew.current = 0;
    crew.records = 0;
    crew.is_sized = false;
    crew.bytes_left = INPUT_BYTES_MAX;
    crew.run.lease_bytes = LEASE_BYTES;
    atomic_store(&crew.run.unleased, LIVE_BYTES_MAX);
    for (unsigned i = 0; i < ACTORS; i++) {
        struct seat *seat = &crew.actors[i].seat;

        memset(seat, 0, sizeof *seat);
        seat->run = &crew.run;
        seat->entries = entries_of_library();
        seat->slots = crew.slots;
        seat->random = random_seeded(crew.run.seed * ACTORS + i);
        seat->index = i;
        seat->refusals = &fuzz_system.refusals;
    }
}

void crew_prepare(void)
{
    if (pthread_key_create(&late_key, on_exit_of_thread) != 0 || sem_init(&turn_back, 0, 0) != 0)
        fuzz_failed("no key or semaphore for the harness");
    for (unsigned i = 0; i < ACTORS; i++)
        sem_init(&crew.actors[i].turn, 0, 0);
    crew.run.slots_mask = SLOTS - 1;
    crew.run.threads = ACTORS;
}

void crew_act(struct input input)
{
    start(input);
    give_turn(&crew.actors[0], begin);
    while (crew.input.left > 0)
        give_turn(&crew.actors[crew.current], steps_run);
    fuzz_system.refusals_left = 0;
    check_invariants();
    give_turn(&crew.actors[crew.current], free_all);
    for (unsigned i = 0; i < ACTORS; i++)
        if (crew.actors[i].exists)
            give_turn(&crew.actors[i], leave);
    give_turn(&crew.actors[0], try_every_tier);
    check_invariants();
    core_check_empty();
}
