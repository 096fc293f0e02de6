# Prints a spreadsheet as comma-separated values, with formulas that depend on earlier cells.
#
#     awk -v rows=N -f sheet.awk
BEGIN {
    print "number,amount,sum,text,share"
    for (row = 2; row <= rows; row++) {
        printf "%d,%d,\"=SUM(B$2:B%d)\",", row, row * 7919 % 997, row
        printf "\"=CONCATENATE(\"\"row \"\",A%d,\"\" of \"\",B%d)\",", row, row
        printf "\"=IF(MOD(A%d,3)=0,ROUND(B%d/C%d,6),VLOOKUP(A%d,A$2:C%d,3))\"\n", row, row,
            row, row, row
    }
}
