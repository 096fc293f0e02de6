/* A chain of live blocks, for the workloads that look at memory rather than at time.
 *
 * The links are in the blocks themselves, as in many programs: a table of millions of pointers
 * would count in the resident set that is to be measured.
 *
 *     head                                tail
 *     [next size tag ... last word] ----> [next size tag ... last word]
 *
 * Thread rule: a chain belongs to one thread. */
#ifndef CHAIN_H
#define CHAIN_H

#include "lab.h"

struct chain_link {
    struct chain_link *next; /* NULL: the last one */
    uint32_t size;           /* of the whole block */
    uint32_t tag;
};

/* The smallest block: the link, and the last word after it. */
#define CHAIN_SIZE_LEAST 24

struct chain {
    struct chain_link *head, *tail;
    uint64_t count, bytes; /* of the blocks, and the sum of their sizes */
};

/* Allocates a block of `size` bytes at the end of the chain. */
static inline void chain_append(
    struct lab_recorder *recorder, struct chain *chain, uint32_t size, uint32_t tag)
{
    struct chain_link *link = lab_malloc(recorder, size);
    *link = (struct chain_link){.size = size, .tag = tag};
    lab_word_write(link, size - 4, tag ^ size);
    if (chain->tail) {
        chain->tail->next = link;
    } else {
        chain->head = link;
    }
    chain->tail = link;
    chain->count++;
    chain->bytes += size;
    recorder->operations++;
}

/* Walks the chain once, checks each block, and frees all but `keep_percent` of them, at random. A
 * block that was handed out twice shows as a link that leads past others: hence the count. */
static inline void chain_thin(
    struct lab_recorder *recorder, struct chain *chain, uint64_t keep_percent,
    struct lab_random *random)
{
    struct chain_link **place = &chain->head;
    uint64_t count = chain->count;
    uint64_t found = 0;
    chain->tail = NULL;
    for (; *place; found++) {
        struct chain_link *link = *place;
        uint64_t last = lab_word_expect(link, link->size, link->size - 4, link->tag ^ link->size);
        recorder->checksum += last << 32 | link->tag;
        if (lab_below(lab_random_next(random), 100) < keep_percent) {
            chain->tail = link;
            place = &link->next;
        } else {
            *place = link->next;
            chain->count--;
            chain->bytes -= link->size;
            lab_free(recorder, link);
            recorder->operations++;
        }
    }
    if (found != count) {
        lab_fail(
            "the chain leads to %llu of %llu blocks", (unsigned long long)found,
            (unsigned long long)count);
    }
}

#endif
