/* Vectors that grow: several are alive at a time, every second one grows by half of its size, the
 * others by a 64th of their final size, or as in C++: all double, by a new block and a copy. A full
 * vector may shrink again by halves; then it is checked, freed, and a new one begins. */
#include "lab.h"

static struct {
    uint64_t operations, vectors, shrinks, size_min, size_max, growth;
} settings;

enum { BY_REALLOC, BY_COPIES };
static const char *const growths[] = {"realloc", "copies", NULL};

/* A vector has elements of this many bytes, of which both ends are written. */
#define ELEMENT 256
#define CONSTANT_STEPS 64

static const struct lab_flag flags[] = {
    LAB_OPERATIONS(&settings.operations, 4000),
    {.name = "vectors",
     .kind = LAB_COUNT,
     .variable = &settings.vectors,
     .standard = 16,
     .least = 1,
     .most = 1000000,
     .unit = "vectors",
     .help = "vectors alive at a time"},
    {.name = "shrinks",
     .kind = LAB_COUNT,
     .variable = &settings.shrinks,
     .standard = 0,
     .least = 0,
     .most = 30,
     .unit = "times",
     .help = "how often a full vector shrinks to half of its size before it goes"},
    {.name = "growth",
     .kind = LAB_CHOICE,
     .variable = &settings.growth,
     .standard = BY_REALLOC,
     .choices = growths,
     .help = "copies: vectors double, by a new block that the old one is copied to"},
    {.name = "size-min",
     .kind = LAB_BYTES,
     .variable = &settings.size_min,
     .standard = 4096,
     .least = ELEMENT,
     .most = LAB_SIZE_MOST,
     .help = "smallest vector, when full"},
    {.name = "size-max",
     .kind = LAB_BYTES,
     .variable = &settings.size_max,
     .standard = 32 << 20,
     .least = ELEMENT,
     .most = LAB_SIZE_MOST,
     .help = "largest vector, when full"},
};

struct vector {
    char *base; /* NULL: there is none */
    size_t size, full_size;
    size_t step;      /* 0: grows by half */
    uint64_t shrinks; /* until it goes, from when it is full on */
    uint32_t tag;
};

static size_t whole_elements(size_t size)
{
    return (size + ELEMENT - 1) / ELEMENT * ELEMENT;
}

static void write_elements(struct vector *vector, size_t from)
{
    for (size_t offset = from; offset < vector->size; offset += ELEMENT) {
        lab_mark(vector->base + offset, ELEMENT, vector->tag + (uint32_t)offset);
    }
}

static void begin(
    struct lab_recorder *recorder, struct vector *vector, size_t full_size, uint32_t tag)
{
    vector->size = ELEMENT;
    vector->full_size = whole_elements(full_size);
    vector->step =
        tag % 2 && settings.growth == BY_REALLOC ? whole_elements(full_size / CONSTANT_STEPS) : 0;
    vector->shrinks = settings.shrinks;
    vector->tag = tag;
    vector->base = lab_malloc(recorder, ELEMENT);
    lab_count_size(recorder, ELEMENT, 1);
    write_elements(vector, 0);
}

/* What a container does that knows no realloc. */
static char *copy(struct lab_recorder *recorder, char *old, size_t old_size, size_t size)
{
    char *fresh = lab_malloc(recorder, size);
    memcpy(fresh, old, old_size < size ? old_size : size);
    lab_free(recorder, old);
    return fresh;
}

/* Writes what is new. True: the block moved. */
static bool resize(struct lab_recorder *recorder, struct vector *vector, size_t size)
{
    size_t old_size = vector->size;
    uintptr_t old_address = (uintptr_t)vector->base;
    vector->base = settings.growth == BY_COPIES ? copy(recorder, vector->base, old_size, size)
                                                : lab_realloc(recorder, vector->base, size);
    vector->size = size;
    lab_count_size(recorder, size, 1);
    write_elements(vector, old_size);
    return (uintptr_t)vector->base != old_address;
}

/* The size that a vector is to have next; the one that it has: it is over. */
static size_t next_size(struct vector *vector)
{
    size_t size = vector->size;
    if (vector->shrinks == settings.shrinks && size < vector->full_size) {
        size_t share = whole_elements(settings.growth == BY_COPIES ? size : size / 2);
        size += vector->step ? vector->step : share;
        return size < vector->full_size ? size : vector->full_size;
    }
    if (vector->shrinks) {
        vector->shrinks--;
        return whole_elements(size / 2);
    }
    return size;
}

static void end(struct lab_recorder *recorder, struct vector *vector)
{
    for (size_t offset = 0; offset < vector->size; offset += ELEMENT) {
        lab_verify(recorder, vector->base + offset, ELEMENT, vector->tag + (uint32_t)offset);
    }
    lab_free(recorder, vector->base);
    vector->base = NULL;
}

static void work(struct lab_worker *worker)
{
    struct lab_recorder *recorder = &worker->recorder;
    struct lab_random random = worker->random;
    const struct lab_sizes *sizes =
        lab_sizes_create(LAB_DOUBLINGS, settings.size_min, settings.size_max, &random);
    struct vector *vectors = lab_reserve(settings.vectors * sizeof *vectors);
    uint64_t calls = 0, begun = 0, moved = 0, in_place = 0;

    lab_clock_start(worker);
    for (; calls < settings.operations; calls++) {
        uint64_t draw = lab_random_next(&random);
        struct vector *vector = &vectors[lab_below(draw, settings.vectors)];
        if (!vector->base) {
            begin(recorder, vector, lab_sizes_at(sizes, begun), (uint32_t)begun);
            begun++;
            continue;
        }
        size_t size = next_size(vector);
        if (size == vector->size) {
            end(recorder, vector);
        } else if (resize(recorder, vector, size)) {
            moved++;
        } else {
            in_place++;
        }
    }
    for (uint64_t i = 0; i < settings.vectors; i++) {
        if (vectors[i].base) {
            end(recorder, &vectors[i]);
            calls++;
        }
    }
    lab_clock_stop(worker);

    recorder->operations += calls;
    lab_figure((double)in_place, "reallocs_in_place");
    lab_figure((double)moved, "reallocs_moved");
    lab_release(vectors, settings.vectors * sizeof *vectors);
}

int main(int argc, char **argv)
{
    lab_begin(
        "realloc-grow", "Grows vectors, with realloc or as C++ does.", flags, LAB_LENGTH(flags),
        argc, argv);
    lab_run(1, work);
    return lab_report();
}
