// Package bench has the commands `holdfast bench`, which measure service times and simulate how
// workers are scaled.
package bench

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/bench/autoscale"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Command returns the commands `holdfast bench`.
func Command(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("bench", "Simulate how workers are scaled", autoscaleCommand(a), measureCommand(a)))
}

// flags are those of `bench autoscale`.
type flags struct {
	times    string
	size     int64
	rows     int
	with     []string
	rate     float64
	platform string
	scenario string
	search   bool
	former   bool
	refused  bool
	csv      string
	seed     uint64
	slots    int
	most     int
	target   time.Duration
	out, in  time.Duration
}

func autoscaleCommand(a *cli.App) *cobra.Command {
	var f flags
	usual := autoscale.Deployed()
	cmd := &cobra.Command{
		Use: "autoscale", Short: "Simulate how workers are scaled on backlog", Args: cli.Needs(),
		Example: "  holdfast bench autoscale\n  holdfast bench autoscale --scenario burst --csv burst.csv\n  holdfast bench autoscale --search",
		RunE:    func(cmd *cobra.Command, _ []string) error { return simulate(a, f) },
	}
	set := cmd.Flags()
	set.StringVar(&f.times, "times", "large", "service times: "+strings.Join(autoscale.Sets(), " or ")+", or a `FILE` of `bench measure`")
	set.Int64Var(&f.size, "size", 1<<30, "`BYTES` of each object: steps that move them take so much longer; 0: as measured")
	set.IntVar(&f.rows, "rows", 1, "jobs of each deposit")
	set.StringSliceVar(&f.with, "with", nil, "optional stages that each job passes: `STAGES` of "+names(autoscale.Optional()))
	set.Float64Var(&f.rate, "rate", 0.1, "usual number of jobs a second")
	set.StringVar(&f.platform, "platform", "", "ecs or kubernetes; both otherwise")
	set.StringVar(&f.scenario, "scenario", "", "one scenario; all otherwise")
	set.BoolVar(&f.search, "search", false, "try other values of each parameter")
	set.BoolVar(&f.former, "former", false, "as before the policy was chosen by the model")
	set.BoolVar(&f.refused, "refused", false, "on ECS, the Registry is refused first workers, and alarms start them")
	set.StringVar(&f.csv, "csv", "", "write each stage's state, minute by minute, to `FILE`, for a plot")
	set.Uint64Var(&f.seed, "seed", 1, "of the random numbers")
	set.IntVar(&f.slots, "slots", registry.DefaultSlots, "of each worker")
	set.IntVar(&f.most, "most", 20, "workers of each stage")
	set.DurationVar(&f.target, "target", usual.Target, "work that may wait for each slot")
	set.DurationVar(&f.out, "out-cooldown", usual.OutCooldown, "the time that a scale-out is under way, on ECS")
	set.DurationVar(&f.in, "in-cooldown", usual.InCooldown, "the time between two scale-ins, on ECS")
	set.BoolVar(&a.JSON, "json", false, "print JSON, one run a line")
	return cmd
}

func (f flags) options() (o autoscale.Options, err error) {
	if f.size < 0 || f.rate <= 0 || f.slots < 1 || f.rows < 1 || f.most < 1 || f.target <= 0 || f.out < 0 || f.in < 0 {
		return o, exit.Usagef("--rate, --rows, --slots, --most and --target must be above 0, the other flags not below")
	}
	t, err := autoscale.Set(f.times)
	if errors.Is(err, autoscale.ErrNoSet) {
		text, read := os.ReadFile(f.times)
		if read != nil {
			return o, exit.Usagef("--times: %w, and no file of that name: %w", err, read)
		}
		t, err = autoscale.ParseTimes(text)
	}
	if err != nil {
		return o, err
	}
	o = autoscale.Options{Policy: autoscale.Deployed(), Times: t.Sized(f.size), Seed: f.seed, Rows: f.rows, Slots: f.slots, Most: f.most, Refused: f.refused}
	for _, name := range f.with {
		stage := registry.Stage(name)
		if !slices.Contains(autoscale.Optional(), stage) {
			return o, exit.Usagef("--with: %q is none of %s", name, names(autoscale.Optional()))
		}
		o.Optional = append(o.Optional, stage)
	}
	o.Policy.Target, o.Policy.OutCooldown, o.Policy.InCooldown = f.target, f.out, f.in
	if f.former {
		o.Policy = autoscale.Former()
	}
	return o, nil
}

// names formats stages as a list.
func names(stages []registry.Stage) string {
	var all []string
	for _, s := range stages {
		all = append(all, string(s))
	}
	return strings.Join(all, ",")
}

func simulate(a *cli.App, f flags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	scenarios := autoscale.Scenarios(f.rate)
	if f.scenario != "" {
		one, err := autoscale.ScenarioOf(f.scenario, f.rate)
		if err != nil {
			return exit.Usagef("--scenario: %w", err)
		}
		scenarios = []autoscale.Scenario{one}
	}
	platforms := autoscale.Platforms()
	switch p := autoscale.Platform(f.platform); p {
	case "":
	case autoscale.ECS, autoscale.Kubernetes:
		platforms = []autoscale.Platform{p}
	default:
		return exit.Usagef("--platform: %q is neither ecs nor kubernetes", f.platform)
	}
	a.Note("service times: %s", o.Times.Measured)
	var stated []registry.Stage
	if o.Times, stated, err = o.Times.WithStated(o.Optional); err != nil {
		return err
	} else if len(stated) > 0 {
		a.Note("stated, not measured: the times of %s", names(stated))
	}
	if f.search {
		return search(a, o, platforms, scenarios)
	}
	var runs []autoscale.Figures
	err = runLister.Print(a, func(yield func(autoscale.Figures) error) (bool, error) {
		for _, o.Platform = range platforms {
			for _, o.Scenario = range scenarios {
				runs = append(runs, autoscale.Run(o))
				if err := yield(runs[len(runs)-1]); err != nil {
					return false, err
				}
			}
		}
		return false, nil
	})
	if err != nil || f.csv == "" {
		return err
	}
	file, err := os.Create(f.csv)
	if err != nil {
		return err
	}
	return errors.Join(autoscale.WriteCSV(file, runs), file.Close())
}

// number is a column of numbers.
func number(name string) terminal.Column { return terminal.Column{Name: name, Right: true} }

var runLister = cli.Lister[autoscale.Figures]{
	Columns: []terminal.Column{
		{Name: "SCENARIO"},
		{Name: "PLATFORM"},
		number("JOBS"), number("LEFT"), number("DRAIN"), number("WAIT P50"), number("P95"), number("FIRST WORK"),
		number("MOST"), number("FIRST DONE"), number("HOURS"), number("IDLE"), number("PEAK"), number("OVERSHOOT"), number("FLAPS"), number("INTERRUPTED"),
	},
	Row: func(f autoscale.Figures) []string {
		return []string{
			f.Scenario, string(f.Platform), strconv.Itoa(f.Jobs), strconv.Itoa(f.Left), seconds(f.Drain), seconds(f.P50), seconds(f.P95), seconds(f.FirstWorkP50),
			seconds(f.FirstWork), seconds(f.FirstDone), fmt.Sprintf("%.1f", f.WorkerHours), fmt.Sprintf("%.1f", f.IdleHours), strconv.Itoa(f.Peak), strconv.Itoa(f.Overshoot),
			strconv.Itoa(f.Flaps), strconv.Itoa(f.Interrupted + f.Killed),
		}
	},
}

// seconds formats a time; "-" is none.
func seconds(s float64) string {
	switch {
	case s < 0:
		return "-"
	case s < 10:
		return fmt.Sprintf("%.1fs", s)
	}
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// seeds are how often a search runs each scenario.
const seeds = 3

func search(a *cli.App, o autoscale.Options, platforms []autoscale.Platform, scenarios []autoscale.Scenario) error {
	for _, o.Platform = range platforms {
		a.Note("%s:", o.Platform)
		l := cli.Lister[autoscale.Choice]{
			Columns: []terminal.Column{
				{Name: "TRIED"}, number("COST"), number("HOURS"), number("WAIT P95"), number("DRAIN"), number("FIRST WORK"), number("OVERSHOOT"), number("FLAPS"), {Name: ""},
			},
			Row: func(c autoscale.Choice) []string {
				is := ""
				if c.Deployed {
					is = "deployed"
				}
				return []string{
					c.Name, fmt.Sprintf("%.0f", c.Cost), fmt.Sprintf("%.1f", c.WorkerHours), seconds(c.Wait), seconds(c.Drain), seconds(c.FirstWork),
					strconv.Itoa(c.Overshoot), strconv.Itoa(c.Flaps), is,
				}
			},
		}
		err := l.Print(a, func(yield func(autoscale.Choice) error) (bool, error) {
			return false, autoscale.Search(o, scenarios, seeds, yield)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func measureCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "measure [ADDRESS|FILE...]", Short: "Make service times for the simulation from metrics",
		Example: "  holdfast bench measure > times.json\n  holdfast bench measure http://registry:8080/metrics http://download:8080/metrics > times.json",
		RunE:    func(cmd *cobra.Command, args []string) error { return measure(cmd.Context(), a, args) },
	}
	return a.ClientFlags(cmd)
}

func measure(ctx context.Context, a *cli.App, from []string) error {
	at, err := a.Service()
	if err != nil && len(from) == 0 {
		return err
	}
	own := strings.TrimSuffix(at.URL, "/") + "/metrics"
	if len(from) == 0 {
		from = []string{own}
	}
	var scrapes []io.Reader
	for _, place := range from {
		var text []byte
		if strings.HasPrefix(place, "http://") || strings.HasPrefix(place, "https://") {
			token := ""
			if place == own {
				token = at.Token
			}
			text, err = autoscale.Scrape(ctx, place, token)
		} else {
			text, err = os.ReadFile(place)
		}
		if err != nil {
			return fmt.Errorf("metrics of %s: %w", place, err)
		}
		scrapes = append(scrapes, strings.NewReader(string(text)))
	}
	t, err := autoscale.Measure(scrapes...)
	if err != nil {
		return err
	}
	t.Measured = fmt.Sprintf("%s, by holdfast bench measure %s", time.Now().UTC().Format(time.DateOnly), strings.Join(from, " "))
	text, err := json.MarshalIndent(t, "", "\t")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "%s\n", text)
	return err
}
