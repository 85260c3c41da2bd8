/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which batches count, and in which class. */
#include "hop.h"

#include <stdio.h>

static const struct {
    double before_ns, after_ns;
    bool steady, near;
} cases[] = {
    {45, 50, true, true},     {50, 45, true, true},    {210, 190, true, false},
    {45, 210, false, true},   {210, 45, false, false}, {109, 111, false, true},
    {111, 109, false, false}, {110, 110, true, false}, {40, 60, true, true},
    {40, 61, false, true},    {61, 40, false, true},   {200, 301, false, false},
};

int main(void)
{
    int wrong = 0;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double before_ns = cases[i].before_ns, after_ns = cases[i].after_ns;
        bool steady = hop_is_steady(before_ns, after_ns, HOP_NEAR_NS);
        bool near = hop_is_near(before_ns, HOP_NEAR_NS);
        if (steady != cases[i].steady || near != cases[i].near) {
            fprintf(stderr, "%g then %g ns: steady %d, near %d\n", before_ns, after_ns, steady,
                    near);
            wrong = 1;
        }
    }
    return wrong;
}
