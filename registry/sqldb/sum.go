package sqldb

// Sum is a sum of whole numbers, as SQL, that does not overflow whatever the numbers are: sources
// and workers say them. It is a floating-point number, exact up to 2^53; NULL of nothing. [Whole]
// reads it.
func Sum(expression string) string { return `SUM(CAST(` + expression + ` AS DOUBLE PRECISION))` }

// Whole is a sum as a whole number, 2^62 at most.
func Whole(sum float64) int64 { return int64(min(sum, 1<<62)) }
