package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// table is the output of a run.
type table struct {
	title string
	parts []part
	notes []string
}

// part is one contest. A ratio above 1 means faster than the base line.
type part struct {
	title string
	base  [2]string
	rows  []row
}

type row struct {
	name      string
	time      time.Duration // 0 if it is not about time
	low, high time.Duration
	rate      string
	ratio     [2]float64 // 0: none
	each      string     // what one job, file or item cost
	target    string
}

func (t *table) write(to io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\n", t.title)
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, p := range t.parts {
		_, _ = fmt.Fprintf(columns, "%s\tmedian\tbest-worst\trate\t%s\t%s\t%s\ttarget\n",
			strings.ToUpper(p.title), p.head(0), p.head(1), p.costHead())
		for _, r := range p.rows {
			median, spread := "", ""
			if r.time > 0 || r.high > 0 {
				median = seconds(r.time)
			}
			if r.high > r.low {
				spread = seconds(r.low) + "-" + seconds(r.high)
			}
			_, _ = fmt.Fprintf(columns, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
				r.name, median, spread, r.rate, times(r.ratio[0]), times(r.ratio[1]), r.each, r.target)
		}
		_, _ = fmt.Fprintln(columns, "\t\t\t\t\t\t\t") // Flush returns errors
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	for _, n := range t.notes {
		fmt.Fprintln(&text, n)
	}
	lines := strings.Split(text.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	_, err := io.WriteString(to, strings.Join(lines, "\n"))
	return err
}

func (p part) head(i int) string {
	if p.base[i] == "" {
		return ""
	}
	return "x " + p.base[i]
}

// costHead heads the column of costs, if a row has any.
func (p part) costHead() string {
	for _, r := range p.rows {
		if r.each != "" {
			return "each: CPU, written, fsync, openat"
		}
	}
	return ""
}

func times(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", ratio)
}

func seconds(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1fms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%.3fs", d.Seconds())
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}
