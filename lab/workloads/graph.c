/* graph: threads share a graph of objects and rewire it in phases.
 *
 * A vertex is a block that points to a second one, its edges. In each phase every thread changes
 * vertices of its part of the graph: it moves a vertex to a new block or gives it new edges. Then
 * all meet, and each thread follows edges into the parts of the others and reads what it finds
 * there. In the next phase the parts are handed round, so that threads free what others allocated.
 *
 * Vertices refer to each other by number, through a table: what an edge leads to depends on the
 * seed, and a vertex may move without a search for the edges that lead to it.
 *
 * Thread rule: between two meetings, a part of the graph belongs to one thread while it is
 * changed, and is read by all while it is walked. */
#include "lab.h"

static struct {
    uint64_t operations, threads, phases, vertices, size_min, size_max;
} settings;

/* What is in a vertex; the rest of the block is payload. */
struct vertex {
    uint32_t tag; /* what lab_mark() writes first */
    uint32_t degree;
    uint32_t *edges; /* numbers of vertices, see edge_target() */
    uint32_t edge_tag;
};

#define DEGREE_MOST 16

static const struct lab_flag flags[] = {
    LAB_OPERATIONS(&settings.operations, 8000000),
    LAB_THREADS(&settings.threads, 2),
    {.name = "phases",
     .kind = LAB_COUNT,
     .variable = &settings.phases,
     .standard = 100,
     .least = 1,
     .most = 1000000,
     .unit = "phases",
     .help = "how often the parts of the graph are handed round"},
    {.name = "vertices",
     .kind = LAB_COUNT,
     .variable = &settings.vertices,
     .standard = 10000,
     .least = 1,
     .most = 100000000,
     .unit = "vertices",
     .help = "vertices of the graph"},
    {.name = "size-min",
     .kind = LAB_BYTES,
     .variable = &settings.size_min,
     .standard = 32,
     .least = sizeof(struct vertex) + 4,
     .most = LAB_SIZE_MOST,
     .help = "smallest vertex"},
    {.name = "size-max",
     .kind = LAB_BYTES,
     .variable = &settings.size_max,
     .standard = 256,
     .least = sizeof(struct vertex) + 4,
     .most = LAB_SIZE_MOST,
     .help = "largest vertex"},
};

static const struct lab_sizes *sizes;

/* The table of vertices, by number. Each entry is a block that holds a struct vertex. */
static struct lab_block *graph;

/* A part of the graph: the vertices from `first` up to before `end`. */
struct part {
    uint64_t first, end;
};

/* The part that a worker has in a phase. With fewer vertices than threads, some are empty. */
static struct part part_of(const struct lab_worker *worker, uint64_t phase)
{
    uint64_t number = (worker->index + phase) % worker->threads;
    return (struct part){
        settings.vertices * number / worker->threads,
        settings.vertices * (number + 1) / worker->threads,
    };
}

/* Where edge `number` of a vertex leads. */
static uint32_t edge_target(uint32_t edge_tag, uint32_t number)
{
    uint64_t draw = (uint64_t)(edge_tag + number * 0x9e3779b1) << 32;
    return (uint32_t)lab_below(draw, settings.vertices);
}

static void edges_create(struct lab_recorder *recorder, struct vertex *vertex, uint32_t edge_tag)
{
    vertex->edge_tag = edge_tag;
    vertex->degree = 1 + edge_tag % DEGREE_MOST;
    vertex->edges = lab_malloc(recorder, vertex->degree * sizeof *vertex->edges);
    lab_count_size(recorder, vertex->degree * sizeof *vertex->edges, 1);
    for (uint32_t i = 0; i < vertex->degree; i++) {
        vertex->edges[i] = edge_target(edge_tag, i);
    }
}

static void edges_destroy(struct lab_recorder *recorder, struct vertex *vertex)
{
    size_t size = vertex->degree * sizeof *vertex->edges;
    for (uint32_t i = 0; i < vertex->degree; i++) {
        recorder->checksum += lab_word_expect(
            vertex->edges, size, i * sizeof *vertex->edges, edge_target(vertex->edge_tag, i));
    }
    lab_free(recorder, vertex->edges);
}

/* Moves a vertex to a new block with a new tag; its edges go along. */
static void vertex_move(
    struct lab_recorder *recorder, struct lab_block *block, uint32_t size, uint32_t tag)
{
    struct vertex vertex = *(struct vertex *)block->address;
    lab_block_free(recorder, block);
    lab_block_allocate(recorder, block, size, tag);
    vertex.tag = tag;
    *(struct vertex *)block->address = vertex;
}

/* Changes vertices of a part; returns how many sizes it used, from index `next_size` on. */
static uint64_t change(
    struct lab_worker *worker, struct part part, uint64_t count, uint64_t next_size)
{
    struct lab_recorder *recorder = &worker->recorder;
    uint64_t moves = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t draw = lab_random_next(&worker->random);
        struct lab_block *block = &graph[part.first + lab_below(draw, part.end - part.first)];
        if (draw % 2) {
            vertex_move(recorder, block, lab_sizes_at(sizes, next_size + moves), (uint32_t)draw);
            moves++;
        } else {
            edges_destroy(recorder, block->address);
            edges_create(recorder, block->address, (uint32_t)draw / 2);
        }
    }
    recorder->operations += 2 * count;
    return moves;
}

/* Follows one edge of each vertex of a part. */
static void walk(struct lab_worker *worker, struct part part, uint64_t phase)
{
    for (uint64_t i = part.first; i < part.end; i++) {
        const struct vertex *vertex = graph[i].address;
        const struct lab_block *target = &graph[vertex->edges[phase % vertex->degree]];
        worker->recorder.checksum += lab_word_expect(target->address, target->size, 0, target->tag);
    }
}

static void work(struct lab_worker *worker)
{
    struct lab_recorder *recorder = &worker->recorder;
    uint64_t changes = lab_share(worker, settings.operations) / 2;
    uint64_t first_size = worker->index * 1021; /* the threads differ in their sizes */
    uint64_t next_size = first_size;

    lab_clock_start(worker);
    struct part part = part_of(worker, 0);
    for (uint64_t i = part.first; i < part.end; i++) {
        uint64_t draw = lab_random_next(&worker->random);
        lab_block_allocate(recorder, &graph[i], lab_sizes_at(sizes, next_size++), (uint32_t)draw);
        edges_create(recorder, graph[i].address, (uint32_t)(draw >> 32));
    }
    recorder->operations += 2 * (part.end - part.first);
    for (uint64_t phase = 0; phase < settings.phases; phase++) {
        lab_meet(worker);
        part = part_of(worker, phase);
        if (part.first < part.end) {
            uint64_t count =
                changes * (phase + 1) / settings.phases - changes * phase / settings.phases;
            next_size += change(worker, part, count, next_size);
        }
        lab_meet(worker);
        walk(worker, part, phase);
    }
    lab_meet(worker);
    part = part_of(worker, settings.phases);
    for (uint64_t i = part.first; i < part.end; i++) {
        edges_destroy(recorder, graph[i].address);
        lab_block_free(recorder, &graph[i]);
    }
    recorder->operations += 2 * (part.end - part.first);
    lab_clock_stop(worker);
    lab_count_draws(recorder, sizes, first_size, next_size - first_size);
}

int main(int argc, char **argv)
{
    lab_begin(
        "graph", "Threads share a graph of objects and rewire it in phases.", flags,
        LAB_LENGTH(flags), argc, argv);
    struct lab_random random = lab_random_stream(settings.threads);
    sizes = lab_sizes_create(LAB_UNIFORM, settings.size_min, settings.size_max, &random);
    graph = lab_reserve(settings.vertices * sizeof *graph);
    lab_run(settings.threads, work);
    return lab_report();
}
