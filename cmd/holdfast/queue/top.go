package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// TopCommand returns the command `holdfast top`.
func TopCommand(a *cli.App) *cobra.Command {
	var once bool
	var every time.Duration
	cmd := &cobra.Command{
		Use: "top", Short: "Watch stages, workers and the last failures live", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < leastEvery {
				return exit.Usagef("--every must be %s or more", leastEvery)
			}
			c, err := a.Connect()
			if err != nil {
				return err
			}
			return top(cmd.Context(), a, c, once, every)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "print once, and end")
	cmd.Flags().DurationVar(&every, "every", defaultEvery, "the time between two looks")
	return cli.WithHelp(helpTexts, a.ClientFlags(cmd))
}

const (
	defaultEvery = 2 * time.Second
	leastEvery   = 200 * time.Millisecond
	topFailures  = 20 // of the last failures, as many as fit are shown
)

// moment is what top shows at one time.
type moment struct {
	At       time.Time             `json:"at"`
	Queue    registry.QueueStatus  `json:"queue"`
	Workers  []registry.WorkerInfo `json:"workers"`
	Failures []registry.WorkItem   `json:"failures"` // the last ones first
}

func look(ctx context.Context, c *client.Client) (m moment, err error) {
	m.At = time.Now()
	if m.Queue, err = c.QueueStatus(ctx); err != nil {
		return m, err
	}
	if m.Workers, err = c.Workers(ctx); err != nil {
		return m, err
	}
	// A batch that failed by its jobs says nothing new, and has one of them at least.
	page, err := c.Items(ctx, registry.ItemQuery{Status: registry.Failed, Limit: 2 * topFailures})
	for _, it := range page.Rows {
		if it.FailedItself() && len(m.Failures) < topFailures {
			m.Failures = append(m.Failures, it)
		}
	}
	return m, err
}

// top shows moments until the user ends it. Without a terminal it prints one.
func top(ctx context.Context, a *cli.App, c *client.Client, once bool, every time.Duration) (err error) {
	m, err := look(ctx, c)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(m)
	}
	var screen *terminal.Screen
	ok := false
	if !once {
		if screen, ok, err = terminal.OpenScreen(a.In, a.Out); err != nil {
			return err
		}
	}
	if !ok {
		_, err := io.WriteString(a.Out, strings.Join(m.lines(terminal.Width(a.Out), 0, terminal.PaintFor(a.Out), ""), "\n")+"\n")
		return err
	}
	defer func() { err = errors.Join(err, screen.Close()) }()
	paint, away := terminal.PaintFor(a.Out), ""
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		columns, rows := screen.Size()
		if err := screen.Draw(m.lines(columns, rows, paint, away)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-screen.Resized:
		case key, open := <-screen.Keys:
			if !open || key == 'q' || key == 'Q' || key == ctrlC {
				return nil
			}
		case <-ticks.C:
			next, err := look(ctx, c)
			switch {
			case err == nil:
				m, away = next, ""
			case ctx.Err() != nil:
				return nil
			case exit.Of(err) == exit.Temporary:
				away = "NO ANSWER, retrying; this is of " + m.At.Local().Format(time.TimeOnly)
			default:
				return err
			}
		}
	}
}

const ctrlC = 3

// lines returns the moment as lines of at most columns columns and at most rows lines; 0: any number.
// note is shown in the first line.
func (m moment) lines(columns, rows int, paint terminal.Paint, note string) []string {
	wide := columns
	if wide <= 0 {
		wide = 1000
	}
	out := m.head(wide, paint, note)
	workers := section(columns, paint, workerColumns(), m.workerRows())
	if len(m.Workers) == 0 {
		workers = []string{paint.Word(terminal.Bad, "no worker lives")}
	}
	failures := m.failureLines(columns, paint, len(m.Failures))
	if len(m.Failures) == 0 {
		failures = []string{paint.Word(terminal.Quiet, "no failures")}
	}
	stages := section(columns, paint, stageColumns(), m.stageRows(false))
	if rows > 0 {
		// Each part has an empty line above it. Where there is little room, idle stages are left
		// out, then the last workers, then the oldest failures.
		left := rows - len(out) - 3
		most := left - min(len(workers), 4) - min(len(failures), 5)
		if len(stages) > most {
			busy := m.stageRows(true)
			stages = section(columns, paint, stageColumns(), busy)
			stages = append(stages, paint.Word(terminal.Quiet, terminal.Plural(int64(len(m.Queue.Stages)-len(busy)), "stage is idle", "stages are idle")))
			stages = bounded(stages, max(most, 2), "lines")
		}
		left -= len(stages)
		workers = bounded(workers, max(left-min(len(failures), 5), 2), "workers")
		most = max(left-len(workers), 2)
		for shown := len(m.Failures) - 1; len(failures) > most && shown > 0; shown-- { // whole ones, with their notes
			failures = append(m.failureLines(columns, paint, shown), fmt.Sprintf("and %d more failures", len(m.Failures)-shown))
		}
		failures = bounded(failures, most, "lines")
	}
	for _, part := range [][]string{stages, workers, failures} {
		out = append(append(out, ""), part...)
	}
	if rows > 0 && len(out) > rows {
		out = out[:rows]
	}
	return out
}

// bounded returns at most most lines, of which the last then says how many are missing.
func bounded(lines []string, most int, what string) []string {
	if len(lines) <= most {
		return lines
	}
	return append(slices.Clone(lines[:most-1]), fmt.Sprintf("and %d more %s", len(lines)-most+1, what))
}

// head returns the first lines: the state of the whole queue.
func (m moment) head(columns int, paint terminal.Paint, note string) (out []string) {
	add := func(meaning terminal.Meaning, text string) {
		for _, line := range terminal.Wrapped(terminal.Clean(text), columns, 2) {
			out = append(out, paint.Word(meaning, line))
		}
	}
	var failed int64
	for _, s := range m.Queue.Stages {
		failed += s.Failed
	}
	add(terminal.Plain, fmt.Sprintf("holdfast %s: %s running, %s failed, %s", m.At.Local().Format(time.DateTime), registry.CountText(m.Queue.Running),
		registry.CountText(failed), terminal.Plural(int64(len(m.Workers)), "worker", "workers")))
	if note != "" {
		add(terminal.Bad, note)
	}
	if p := m.Queue.Paused; p != nil {
		add(terminal.Waiting, "PAUSED "+terminal.SinceText(p.CreatedAt, p.Actor, p.Reason))
	}
	if !m.Queue.Accepting.On {
		add(terminal.Waiting, "NO SUBMISSIONS ARE ACCEPTED "+terminal.SinceText(m.Queue.Accepting.Since, m.Queue.Accepting.Actor, m.Queue.Accepting.Reason))
	}
	if m.Queue.Damaged > 0 {
		add(terminal.Bad, "DAMAGED: "+terminal.Plural(m.Queue.Damaged, "stored file", "stored files"))
	}
	return out
}

// section returns a table as lines.
func section(columns int, paint terminal.Paint, of []terminal.Column, rows [][]string) []string {
	var text bytes.Buffer
	t := terminal.NewTable(&text, columns, of...).ForScreen(paint)
	for _, r := range rows {
		_ = t.Row(r...) // a buffer takes all
	}
	_ = t.End()
	if text.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

func stageColumns() []terminal.Column {
	return []terminal.Column{
		{Name: "stage"},
		{Name: "ready", Right: true, Meaning: terminal.Counted(terminal.Plain)},
		{Name: "waiting", Right: true, Meaning: terminal.Counted(terminal.Waiting)},
		{Name: "held", Right: true, Meaning: terminal.Counted(terminal.Waiting)},
		{Name: "running", Right: true, Meaning: terminal.Counted(terminal.Busy)},
		{Name: "failed", Right: true, Meaning: terminal.Counted(terminal.Bad)},
		{Name: "free", Right: true, Meaning: func(value string) terminal.Meaning {
			if value == noWorker {
				return terminal.Bad
			}
			return terminal.Plain
		}},
		{Name: "oldest ready", Right: true, Spare: 1},
	}
}

// noWorker stands in place of free slots where items are ready and nobody serves the stage.
const noWorker = "NO WORKER"

// stageRows returns a row for each stage, or only for those with items.
func (m moment) stageRows(busy bool) (rows [][]string) {
	for _, s := range m.Queue.Stages {
		if busy && s.Ready+s.Waiting+s.Held+s.Running+s.Failed == 0 {
			continue
		}
		free, oldest := fmt.Sprintf("%d of %d", s.Free, s.Capacity), ""
		if s.Capacity == 0 {
			if free = "-"; s.Ready > 0 {
				free = noWorker
			}
		}
		if s.OldestReady != nil {
			oldest = terminal.SpanText(m.At.Sub(*s.OldestReady))
		}
		rows = append(rows, []string{
			string(s.Stage), registry.CountText(s.Ready), registry.CountText(s.Waiting), registry.CountText(s.Held), registry.CountText(s.Running), registry.CountText(s.Failed), free, oldest,
		})
	}
	return rows
}

func workerColumns() []terminal.Column {
	return []terminal.Column{
		{Name: "worker", Flex: true},
		{Name: "version", Spare: 2},
		{Name: "busy", Right: true, Meaning: terminal.Counted(terminal.Busy)},
		{Name: "slots", Right: true},
		{Name: "seen", Right: true},
		{Name: "state", Meaning: func(string) terminal.Meaning { return terminal.Waiting }},
		{Name: "stages", Flex: true, Spare: 1},
	}
}

func (m moment) workerRows() (rows [][]string) {
	for _, w := range m.Workers {
		slots, free := 0, 0
		stages := slices.Sorted(maps.Keys(w.Capacity))
		names := make([]string, len(stages))
		for i, s := range stages {
			slots, free, names[i] = slots+w.Capacity[s], free+w.Free[s], string(s)
		}
		state := ""
		if w.Draining {
			state = "stopping"
		}
		rows = append(rows, []string{
			w.ID, w.Version, registry.CountText(int64(slots - free)), registry.CountText(int64(slots)), terminal.SpanText(max(m.At.Sub(w.SeenAt), 0)) + " ago", state, strings.Join(names, " "),
		})
	}
	return rows
}

func failureColumns() []terminal.Column {
	return []terminal.Column{
		{Name: "last failures"},
		{Name: "item", ID: true},
		{Name: "stage", Spare: 2},
		{Name: "fault", Meaning: func(string) terminal.Meaning { return terminal.Bad }},
		{Name: "name", Flex: true, Spare: 1},
		{Name: "note", Flex: true, Below: 2},
	}
}

// failureLines returns the last most failures as lines.
func (m moment) failureLines(columns int, paint terminal.Paint, most int) []string {
	var rows [][]string
	for _, it := range m.Failures[:most] {
		rows = append(rows, []string{it.UpdatedAt.Local().Format("01-02 15:04"), it.ID, string(it.Stage), string(it.ErrorClass), it.Heading(), it.Note})
	}
	return section(columns, paint, failureColumns(), rows)
}
