/* handoff: producers allocate messages, consumers check and free them.
 *
 * No block is freed by the thread that allocated it: what the producers allocate has to find its
 * way back to them, or the program grows. Messages travel in batches through one bounded queue, so
 * that the queue costs little beside malloc and the live set stays bounded. With large batches the
 * producers allocate much before anything is freed:
 *
 *     producer: fill a batch --> [batch][batch][batch]... --> consumer: check and free a batch
 *
 * Thread rule: the queue's fields are read and written under its lock; a batch outside the queue
 * belongs to the thread that fills or empties it. */
#include "lab.h"

#include <pthread.h>

static struct {
    uint64_t operations, producers, consumers, batch, queue, size_min, size_max;
} settings;

static const struct lab_flag flags[] = {
    LAB_OPERATIONS(&settings.operations, 5000000),
    {.name = "producers",
     .kind = LAB_COUNT,
     .variable = &settings.producers,
     .standard = 1,
     .least = 1,
     .most = 1024,
     .unit = "threads",
     .help = "threads that allocate messages"},
    {.name = "consumers",
     .kind = LAB_COUNT,
     .variable = &settings.consumers,
     .standard = 1,
     .least = 1,
     .most = 1024,
     .unit = "threads",
     .help = "threads that free messages"},
    {.name = "batch",
     .kind = LAB_COUNT,
     .variable = &settings.batch,
     .standard = 64,
     .least = 1,
     .most = 1000000,
     .unit = "messages",
     .help = "messages that travel together"},
    {.name = "queue",
     .kind = LAB_COUNT,
     .variable = &settings.queue,
     .standard = 64,
     .least = 2,
     .most = 1000000,
     .unit = "batches",
     .help = "batches that the queue holds"},
    LAB_SIZES(&settings.size_min, 16, &settings.size_max, 512),
};

static const struct lab_sizes *sizes;

struct batch {
    struct lab_block *messages; /* room for settings.batch */
    uint64_t count;
};

static struct batch batch_create(void)
{
    return (struct batch){lab_reserve(settings.batch * sizeof(struct lab_block)), 0};
}

static void batch_destroy(const struct batch *batch)
{
    lab_release(batch->messages, settings.batch * sizeof(struct lab_block));
}

/* Sleepers are woken when the queue is half full or half empty, not at every batch: a switch of
 * threads costs as much as the messages of a whole batch. No wake-up is lost: between empty, where
 * consumers fall asleep, and full, where producers do, the queue passes through half. A batch
 * changes places with an empty one of the queue: nothing is copied. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled, drained;
    uint64_t first, count; /* the batches in use, in the order in which they came */
    uint64_t producers;    /* those that may still bring batches */
    struct batch *batches; /* settings.queue of them */
} queue = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .filled = PTHREAD_COND_INITIALIZER,
    .drained = PTHREAD_COND_INITIALIZER,
};

static void swap(struct batch *one, struct batch *other)
{
    struct batch swapped = *one;
    *one = *other;
    *other = swapped;
}

/* Appends what `batch` holds, which is empty afterwards. */
static void queue_push(struct batch *batch)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count == settings.queue) {
        pthread_cond_wait(&queue.drained, &queue.lock);
    }
    swap(&queue.batches[(queue.first + queue.count) % settings.queue], batch);
    batch->count = 0;
    queue.count++;
    if (queue.count == settings.queue / 2) {
        pthread_cond_broadcast(&queue.filled);
    }
    pthread_mutex_unlock(&queue.lock);
}

/* Takes the oldest batch in place of what `batch` held; false when none will come any more. */
static bool queue_pop(struct batch *batch)
{
    pthread_mutex_lock(&queue.lock);
    while (!queue.count && queue.producers) {
        pthread_cond_wait(&queue.filled, &queue.lock);
    }
    bool found = queue.count > 0;
    if (found) {
        swap(&queue.batches[queue.first], batch);
        queue.first = (queue.first + 1) % settings.queue;
        queue.count--;
        if (queue.count == settings.queue / 2) {
            pthread_cond_broadcast(&queue.drained);
        }
    }
    pthread_mutex_unlock(&queue.lock);
    return found;
}

/* A producer has brought its last batch. */
static void queue_leave(void)
{
    pthread_mutex_lock(&queue.lock);
    queue.producers--;
    if (!queue.producers) {
        pthread_cond_broadcast(&queue.filled);
    }
    pthread_mutex_unlock(&queue.lock);
}

static void produce(struct lab_worker *worker)
{
    struct lab_recorder *recorder = &worker->recorder;
    uint64_t total = settings.operations / 2;
    uint64_t message = total * worker->index / settings.producers;
    uint64_t end = total * (worker->index + 1) / settings.producers;
    recorder->operations += end - message;
    lab_count_draws(recorder, sizes, message, end - message);

    struct batch batch = batch_create();
    lab_clock_start(worker);
    for (; message < end; message++) {
        uint32_t tag = (uint32_t)lab_random_next(&worker->random);
        lab_block_allocate(
            recorder, &batch.messages[batch.count++], lab_sizes_at(sizes, message), tag);
        if (batch.count == settings.batch) {
            queue_push(&batch);
        }
    }
    queue_push(&batch);
    queue_leave();
    lab_clock_stop(worker);
    batch_destroy(&batch);
}

static void consume(struct lab_worker *worker)
{
    struct lab_recorder *recorder = &worker->recorder;
    struct batch batch = batch_create();
    lab_clock_start(worker);
    while (queue_pop(&batch)) {
        for (uint64_t i = 0; i < batch.count; i++) {
            lab_block_free(recorder, &batch.messages[i]);
        }
        recorder->operations += batch.count;
    }
    lab_clock_stop(worker);
    batch_destroy(&batch);
}

static void work(struct lab_worker *worker)
{
    if (worker->index < settings.producers) {
        produce(worker);
    } else {
        consume(worker);
    }
}

int main(int argc, char **argv)
{
    lab_begin(
        "handoff", "Producers allocate messages, consumers free them.", flags, LAB_LENGTH(flags),
        argc, argv);
    uint64_t threads = settings.producers + settings.consumers;
    struct lab_random random = lab_random_stream(threads);
    sizes = lab_sizes_create(LAB_UNIFORM, settings.size_min, settings.size_max, &random);
    queue.producers = settings.producers;
    queue.batches = lab_reserve(settings.queue * sizeof *queue.batches);
    for (uint64_t i = 0; i < settings.queue; i++) {
        queue.batches[i] = batch_create();
    }
    lab_run(threads, work);
    return lab_report();
}
