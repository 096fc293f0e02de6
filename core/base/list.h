/* Intrusive doubly linked list with a one-pointer head: an all-zero head is the empty list, and a
 * node can leave its list without knowing which one it is on. The owner's lock guards both. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/macros.h"

struct list_node {
    struct list_node *next;
    struct list_node **link; /* the pointer that points at this node; NULL: on no list */
};

struct list {
    struct list_node *first;
};

static inline void list_push(struct list *list, struct list_node *node)
{
    node->next = list->first;
    node->link = &list->first;
    if (node->next)
        node->next->link = &node->next;
    list->first = node;
}

static inline void list_remove(struct list_node *node)
{
    *node->link = node->next;
    if (node->next)
        node->next->link = node->link;
    node->link = NULL;
}

ALWAYS_INLINE bool list_contains(const struct list_node *node)
{
    return node->link != NULL;
}

/* A queue of such nodes: a pushed node comes last. All-zero is empty. */
struct queue {
    struct list_node *first;
    struct list_node **end; /* the place to link the next node; NULL before the first */
};

static inline void queue_push(struct queue *queue, struct list_node *node)
{
    node->next = NULL;
    node->link = queue->first ? queue->end : &queue->first;
    *node->link = node;
    queue->end = &node->next;
}

static inline void queue_remove(struct queue *queue, struct list_node *node)
{
    if (!node->next)
        queue->end = node->link;
    list_remove(node);
}

#define LIST_ENTRY(node, type, member) ((node) ? CONTAINER_OF(node, type, member) : (type *)NULL)

#endif
