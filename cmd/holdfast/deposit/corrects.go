package deposit

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// correctsOf reads the values of --corrects: a batch, lines of its manifest (ID:7-9,12), or jobs of one
// batch, which are the rows on their lines. It returns nil if there are none.
func correctsOf(ctx context.Context, a *cli.App, c *client.Client, given []string) (*registry.Corrects, error) {
	var all *registry.Corrects
	for _, text := range given {
		one, err := correctsOne(ctx, a, c, text)
		if err != nil {
			return nil, err
		}
		switch {
		case all == nil:
			all = one
		case one.BatchID != all.BatchID:
			return nil, exit.Fix(exit.Usagef("--corrects names batch %s and batch %s", all.BatchID, one.BatchID), "a submission corrects one batch: submit what corrects the other one by itself")
		case len(one.Lines) == 0 || len(all.Lines) == 0:
			return nil, exit.Fix(exit.Usagef("--corrects names batch %s, and rows of it", all.BatchID), "give the batch, or the rows")
		default:
			all.Lines = append(all.Lines, one.Lines...)
		}
	}
	if all != nil {
		slices.SortFunc(all.Lines, func(x, y registry.LineRange) int { return cmp.Compare(x.First, y.First) })
		all.Lines = slices.Compact(all.Lines)
	}
	return all, nil
}

// correctsOne reads one value.
func correctsOne(ctx context.Context, a *cli.App, c *client.Client, text string) (*registry.Corrects, error) {
	id, lines, ranged := strings.Cut(text, ":")
	id, err := a.WholeID(ctx, "", strings.TrimSpace(id))
	if err != nil {
		return nil, err
	}
	it, err := c.Item(ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case it.Action == registry.Batch && !ranged:
		return &registry.Corrects{BatchID: id}, nil
	case it.Action == registry.Batch:
		ranges, err := lineRanges(lines)
		return &registry.Corrects{BatchID: id, Lines: ranges}, err
	case it.ParentID != "" && it.Line > 0 && !ranged:
		return &registry.Corrects{BatchID: it.ParentID, Lines: []registry.LineRange{{First: it.Line, Last: it.Line}}}, nil
	}
	return nil, exit.Usagef("--corrects %s: expected the ID of a batch or of one of its jobs, or ID:LINES of a batch (7-9,12)", text)
}

// lineRanges reads lines such as 7-9,12.
func lineRanges(text string) (all []registry.LineRange, err error) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(strings.TrimSpace(part), "-")
		if !ranged {
			last = first
		}
		var l registry.LineRange
		if l.First, err = strconv.ParseInt(first, 10, 64); err == nil {
			l.Last, err = strconv.ParseInt(last, 10, 64)
		}
		if err != nil {
			return nil, exit.Usagef("--corrects: %q are no lines; give them as 7-9,12", text)
		}
		all = append(all, l)
	}
	return all, nil
}
