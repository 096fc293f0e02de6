# Prints a drawing in SVG: gradients, curves, clipping, filters and groups.
#
#     awk -v shapes=N -f drawing.awk
BEGIN {
    print "<svg xmlns='http://www.w3.org/2000/svg' width='600' height='600'>"
    print "<defs><filter id='soft'><feGaussianBlur stdDeviation='3'/></filter>"
    print "<clipPath id='round'><circle cx='300' cy='300' r='290'/></clipPath>"
    for (i = 0; i < 20; i++) {
        printf "<linearGradient id='g%d'><stop stop-color='#%06x'/>", i, i * 7919 % 16777216
        printf "<stop offset='1' stop-color='#%06x'/></linearGradient>\n", i * 104729 % 16777216
    }
    print "</defs><g clip-path='url(#round)'>"
    for (i = 0; i < shapes; i++) {
        x = i * 7919 % 600
        y = i * 104729 % 600
        printf "<g transform='rotate(%d %d %d)' opacity='0.%d'>", i % 360, x, y, i % 8 + 2
        printf "<path d='M%d %d c 40 0 60 %d 20 60 s -70 10 -20 -60 z'", x, y, i % 50
        printf " fill='url(#g%d)' stroke='black'%s/>", i % 20, i % 40 ? "" : " filter='url(#soft)'"
        print "</g>"
    }
    print "</g></svg>"
}
