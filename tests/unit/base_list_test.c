/* base/list: a few lists and nodes that move between them, compared with arrays. */
#include "unit.h"

#include "base/list.h"

enum { LISTS = 3, NODES = 12 };

struct item {
    int name;
    struct list_node node;
};

struct model {
    struct item *order[NODES]; /* first to last */
    unsigned count;
};

static struct item items[NODES];
static struct list lists[LISTS];
static struct model models[LISTS];

static void model_push(struct model *model, struct item *item)
{
    memmove(&model->order[1], &model->order[0], model->count * sizeof model->order[0]);
    model->order[0] = item;
    model->count++;
}

static bool model_remove(struct model *model, const struct item *item)
{
    for (unsigned i = 0; i < model->count; i++) {
        if (model->order[i] != item)
            continue;
        model->count--;
        memmove(
            &model->order[i], &model->order[i + 1], (model->count - i) * sizeof model->order[0]);
        return true;
    }
    return false;
}

static void compare(void)
{
    for (unsigned l = 0; l < LISTS; l++) {
        struct list_node *node = lists[l].first;
        struct list_node **link = &lists[l].first;
        for (unsigned i = 0; i < models[l].count; i++) {
            CHECK(node == &models[l].order[i]->node);
            CHECK(node->link == link);
            CHECK(CONTAINER_OF(node, struct item, node) == models[l].order[i]);
            link = &node->next;
            node = node->next;
        }
        CHECK(node == NULL);
        CHECK(LIST_ENTRY(node, struct item, node) == NULL);
    }
}

static void lists_agree_with_arrays(void **state)
{
    (void)state;
    uint64_t random = 11;
    for (int step = 0; step < 20000; step++) {
        struct item *item = &items[unit_below(&random, NODES)];
        bool listed = false;
        for (unsigned l = 0; l < LISTS; l++)
            listed = model_remove(&models[l], item) || listed;
        CHECK(list_contains(&item->node) == listed);
        if (listed) {
            list_remove(&item->node);
            CHECK(!list_contains(&item->node));
        }
        if (!listed || unit_below(&random, 2)) {
            unsigned l = unit_below(&random, LISTS);
            list_push(&lists[l], &item->node);
            model_push(&models[l], item);
        }
        compare();
    }
}

/* A queue against an array: what is pushed comes last, anyone may leave. */
static void a_queue_keeps_its_order(void **state)
{
    (void)state;
    struct queue queue = {NULL, NULL};
    struct item *order[NODES];
    unsigned count = 0;
    uint64_t random = 13;
    memset(items, 0, sizeof items);
    for (int step = 0; step < 20000; step++) {
        struct item *item = &items[unit_below(&random, NODES)];
        if (list_contains(&item->node)) {
            unsigned at = 0;
            while (order[at] != item)
                at++;
            memmove(&order[at], &order[at + 1], (--count - at) * sizeof order[0]);
            queue_remove(&queue, &item->node);
        } else {
            order[count++] = item;
            queue_push(&queue, &item->node);
        }
        struct list_node *node = queue.first;
        for (unsigned i = 0; i < count; i++, node = node->next)
            CHECK(node == &order[i]->node);
        CHECK(node == NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_agree_with_arrays),
        cmocka_unit_test(a_queue_keeps_its_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
