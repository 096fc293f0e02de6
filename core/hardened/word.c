/* See word.h. */
#include "hardened/word.h"

#include "base/poison.h"
#include "base/random.h"
#include "os/os.h"

void word_draw_secrets(struct slab *slab)
{
    uint64_t *secret = slab_secret(slab), *random = slab_random(slab);
    /* A slab of one block has no canary, and no choice of blocks. */
    if (word_is_large(slab))
        return;
    /* The two words lie side by side. */
    if (os_random(secret, 2 * sizeof *secret))
        return;
    /* The system has nothing random yet. */
    *random = os_clock_ns() ^ (uintptr_t)slab->base << 20;
    *secret = random_next(random);
}

/* Takes one of the free blocks in the words from `first` up to `end`, if there is one; a slab of a
 * large block has no choice. */
static unsigned take_one(struct slab *slab, unsigned first, unsigned end)
{
    unsigned word = first, turn = 0;
    if (!word_is_large(slab)) {
        uint64_t random = *slab_random(slab) ^ random_of_process;
        word += random_below(&random, end - first);
        turn = random_below(&random, 64);
        *slab_random(slab) = random ^ random_of_process;
    }
    while (!slab->free[word])
        word = word + 1 < end ? word + 1 : first;
    uint64_t bits = slab->free[word], turned = bits >> turn | bits << (64 - turn) % 64;
    unsigned bit = (bits_lowest(turned) + turn) % 64;
    slab->free[word] = bits & ~((uint64_t)1 << bit);
    return word * 64 + bit;
}

/* Takes `count` at random out of the lowest count + 64 free blocks, rounded up to words of the
 * bitmap. */
unsigned hardened_take(struct slab *slab, void **blocks, unsigned count)
{
    size_t size = size_classes[slab->size_class].size;
    unsigned words = (slab->blocks + 63u) / 64, end = slab->first_word, choice = 0, taken;
    if (count > slab->free_blocks)
        count = slab->free_blocks;
    /* A choice among more would touch more pages. */
    while (end < words && choice < count + 64)
        choice += bits_count(slab->free[end++]);
    for (taken = 0; taken < count; taken++) {
        unsigned index = take_one(slab, slab->first_word, end);
        blocks[taken] = slab->base + index * size;
        slab_touch(slab, index, 1);
        slab->watermark = (uint16_t)size_max(slab->watermark, index + 1);
    }
    unpoison_blocks(blocks, taken, size);
    while (slab->first_word < words - 1 && !slab->free[slab->first_word])
        slab->first_word++;
    slab->free_blocks -= (uint16_t)taken;
    return taken;
}

void word_check_unused(char *block, size_t length)
{
    if (length > TINY_MAX)
        return;
    /* A write first: a read would map the system's page of zeros, and the next write fault again.
     */
    *(volatile uint64_t *)(block + length - CANARY_SIZE) = 0;
    if (UNLIKELY(!bytes_are_zero(block, length)))
        fatal_pointer("malloc", DEFECT_STRAY, block, NULL, 0);
}
