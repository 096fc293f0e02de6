/* Compares the kind of function, size and alignment by which a block was allocated with those by
 * which it is freed; the same for big blocks. */
#include "hardened/front.h"
#include "hardened/operators.h"

bool form_is_excused(uint32_t word, enum form form)
{
    unsigned kind = form & FORM_ANY, made = word_form(word);
    bool crosses = kind != made && (kind == FORM_MALLOC || made == FORM_MALLOC);
    return word_state(word) == WORD_LIVE && crosses && operators_of_others();
}

void form_check(const void *block, uint32_t word, enum form form, const char *call)
{
    static const char *const makers[] = {"malloc", "operator new", "operator new[]"};
    static const char *const enders[] = {
        [FORM_NEW] = "operator delete", [FORM_NEW_ARRAY] = "operator delete[]"};
    unsigned kind = form & FORM_ANY;
    const char *ender = kind == FORM_NEW || kind == FORM_NEW_ARRAY ? enders[kind] : call;
    if (word_fits(word, form) || form_is_excused(word, form))
        return;
    if (kind != FORM_ANY && word_form(word) != kind)
        fatal_maker(ender, block, makers[word_form(word)]);
    fatal_told(ender, "wrong alignment for pointer", MIN_ALIGNMENT, block, word_alignment(word));
}

/* An alignment as a word keeps it: at most MOST. */
static size_t kept_alignment(size_t alignment)
{
    enum { MOST = 1 << 30 };
    return size_min(size_max(alignment, MIN_ALIGNMENT), MOST);
}

uint32_t form_of_big(size_t size, size_t alignment, enum form form)
{
    return word_live(size == 0, kept_alignment(alignment), form);
}

/* The word of the block, and its requested size; 0: it is not live. */
static uint32_t find_word(const void *block, size_t *size)
{
    struct block_info info = front_find(block);
    uint32_t word = 0;
    size_t index = 0;
    if (info.kind == BLOCK_BIG && block == info.big->region.base) {
        word = info.big->live ? info.big->word : 0;
        *size = info.big->mapped - word_size(info.big->word);
    } else if (info.kind == BLOCK_SLAB) {
        index = word_index(info.slab, block);
        if (index < info.slab->blocks)
            word = ATOMIC_LOAD_ACQUIRE(slab_word(info.slab, (unsigned)index));
        *size = word_size(word);
    }
    return word_state(word) == WORD_LIVE ? word : 0;
}

void hardened_expect(
    const void *block, size_t size, size_t alignment, enum form form, const char *call)
{
    size_t asked = 0;
    bool zero_size = zero_size_covers(block);
    uint32_t word = find_word(block, &asked);
    if ((!word && !zero_size) || form_is_excused(word, form))
        return;
    if (size != SIZE_MAX && size != asked)
        fatal_told(call, "wrong size for pointer", size, block, asked);
    /* The alignment of a request for no bytes is not kept. */
    if (zero_size)
        return;
    size_t kept = alignment ? kept_alignment(alignment) : word_alignment(word);
    if (kept != word_alignment(word) || (alignment & (alignment - 1)))
        fatal_told(call, "wrong alignment for pointer", alignment, block, word_alignment(word));
}
