package sqldb

// Sum returns the SQL expression for a sum that cannot overflow, because workers and sources supply
// the numbers. It is a floating-point number, exact up to 2^53, and NULL without rows. [Whole]
// converts it.
func Sum(expression string) string { return `SUM(CAST(` + expression + ` AS DOUBLE PRECISION))` }

// Whole returns a sum as a whole number, at most 2^62.
func Whole(sum float64) int64 { return int64(min(sum, 1<<62)) }
