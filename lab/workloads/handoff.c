/* handoff: producers allocate messages, consumers check and free them.
 *
 * No block is freed by the thread that allocated it: what the producers allocate has to find its
 * way back to them, or the program grows. Messages travel in batches through one bounded queue, so
 * that the queue costs little beside malloc and the live set stays bounded:
 *
 *     producer: fill a batch --> [batch][batch][batch]... --> consumer: check and free a batch
 *
 * Thread rule: the queue's fields are read and written under its lock; a batch outside the queue
 * belongs to the thread that fills or empties it. */
#include "lab.h"

#include <pthread.h>

static struct {
    uint64_t operations, producers, consumers, size_min, size_max;
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
    LAB_SIZES(&settings.size_min, 16, &settings.size_max, 512),
};

static const struct lab_sizes *sizes;

#define BATCH_MESSAGES 64
#define QUEUE_BATCHES 64

struct batch {
    struct lab_block messages[BATCH_MESSAGES];
    uint64_t count;
};

/* Sleepers are woken when the queue is half full or half empty, not at every batch: a switch of
 * threads costs as much as the messages of a whole batch. No wake-up is lost: between empty, where
 * consumers fall asleep, and full, where producers do, the queue passes through half. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled, drained;
    uint64_t first, count; /* the batches in use, in the order in which they came */
    uint64_t producers;    /* those that may still bring batches */
    struct batch batches[QUEUE_BATCHES];
} queue = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .filled = PTHREAD_COND_INITIALIZER,
    .drained = PTHREAD_COND_INITIALIZER,
};

static void queue_push(const struct batch *batch)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count == QUEUE_BATCHES) {
        pthread_cond_wait(&queue.drained, &queue.lock);
    }
    queue.batches[(queue.first + queue.count) % QUEUE_BATCHES] = *batch;
    queue.count++;
    if (queue.count == QUEUE_BATCHES / 2) {
        pthread_cond_broadcast(&queue.filled);
    }
    pthread_mutex_unlock(&queue.lock);
}

/* Takes the oldest batch; false when none will come any more. */
static bool queue_pop(struct batch *batch)
{
    pthread_mutex_lock(&queue.lock);
    while (!queue.count && queue.producers) {
        pthread_cond_wait(&queue.filled, &queue.lock);
    }
    bool found = queue.count > 0;
    if (found) {
        *batch = queue.batches[queue.first];
        queue.first = (queue.first + 1) % QUEUE_BATCHES;
        queue.count--;
        if (queue.count == QUEUE_BATCHES / 2) {
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

    struct batch batch = {0};
    lab_clock_start(worker);
    for (; message < end; message++) {
        uint32_t tag = (uint32_t)lab_random_next(&worker->random);
        lab_block_allocate(
            recorder, &batch.messages[batch.count++], lab_sizes_at(sizes, message), tag);
        if (batch.count == BATCH_MESSAGES) {
            queue_push(&batch);
            batch.count = 0;
        }
    }
    queue_push(&batch);
    queue_leave();
    lab_clock_stop(worker);
}

static void consume(struct lab_worker *worker)
{
    struct lab_recorder *recorder = &worker->recorder;
    struct batch batch;
    lab_clock_start(worker);
    while (queue_pop(&batch)) {
        for (uint64_t i = 0; i < batch.count; i++) {
            lab_block_free(recorder, &batch.messages[i]);
        }
        recorder->operations += batch.count;
    }
    lab_clock_stop(worker);
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
    lab_run(threads, work);
    return lab_report();
}
