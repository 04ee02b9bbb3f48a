package registry

import (
	"fmt"
	"strings"
)

// SizeText gives a number of bytes in binary units, for people: 12 GiB, 1.5 MiB, 300 bytes.
func SizeText(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	const units = "KMGTPE"
	v, unit := float64(n)/1024, 0
	for v >= 1023.95 && unit < len(units)-1 { // 1023.95 would be printed as 1024
		v /= 1024
		unit++
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + fmt.Sprintf(" %ciB", units[unit])
}
