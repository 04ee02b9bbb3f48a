package role

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/webserver"
)

// startWait is the default of --wait.
const startWait = 30 * time.Second

// The production roles. Each prints one line of key=value words when it is ready, for scripts, and
// then runs until it is stopped.

// RegistryCommand returns the command `holdfast registry`.
func RegistryCommand(a *cli.App) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "registry", Short: "Run the Registry: API, pages, relay and sweep over a database",
		Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runRole(cmd.Context(), a, "registry", nil, wait, config.DefaultListen, config.RegistryNeeds, func(ctx context.Context, c config.Config, o node.Common, w node.Work) (*node.Node, error) {
				if len(c.ACMEHosts) > 0 && c.ACMECache == "" {
					o.Faults = errors.Join(o.Faults, c.Require("registry", "ACME_CACHE"))
				}
				receipts, _ := c.Receipts() // Load has checked it
				n, err := node.Registry(ctx, node.RegistryOptions{Common: o, Work: w, Places: places(c), NSQ: nsq(c), Web: web(c), Database: c.DatabaseURL, ReceiptKey: receipts, CloudWatch: c.CloudWatch, ECS: node.ECS{Cluster: c.ECSCluster, Most: c.ECSMost}})
				if err != nil {
					return nil, err
				}
				return n, ready(a, "registry", "url="+n.URL())
			})
		},
	}
	waitFlag(cmd, &wait)
	return cli.WithHelp(helpTexts, cmd)
}

// WorkerCommand returns the command `holdfast worker`.
func WorkerCommand(a *cli.App) *cobra.Command {
	var wait time.Duration
	stages := make([]string, 0, len(registry.Stages()))
	for _, s := range registry.Stages() {
		stages = append(stages, string(s))
	}
	cmd := &cobra.Command{
		Use: "worker STAGE...", Short: "Run the workers of one or several stages",
		Long: "The stages are " + strings.Join(stages, ", ") + ".",
		Args: cli.Needs("STAGE..."), ValidArgs: stages,
		RunE: func(cmd *cobra.Command, args []string) error {
			serve, err := stagesOf(args, stages)
			if err != nil {
				return err
			}
			return runRole(cmd.Context(), a, "worker", serve, wait, "", config.WorkerNeeds, func(ctx context.Context, c config.Config, o node.Common, w node.Work) (*node.Node, error) {
				if webserver.PlainTo(c.URL) && !bool(c.PlainHTTP) {
					o.Log.WarnContext(ctx, "the token travels by plain HTTP", "why", fmt.Sprintf(cli.PlainTo, c.URL))
				}
				roots, err := webserver.Trust(c.CAFile)
				if err != nil && o.Faults == nil {
					return nil, err
				}
				redisRoots, _ := webserver.Trust(c.RedisCAFile) // Load has checked it
				n, err := node.Worker(ctx, node.WorkerOptions{
					Common: o, Work: w, Places: places(c), NSQ: nsq(c), Stages: serve,
					Registry: c.URL, Token: c.Token, Roots: roots, Redis: c.RedisURL, RedisRoots: redisRoots,
				})
				if err != nil {
					return nil, err
				}
				words := []string{"id=" + n.Worker(), "stages=" + strings.Join(args, ",")}
				if n.URL() != "" {
					words = append(words, "url="+n.URL())
				}
				return n, ready(a, "worker", words...)
			})
		},
	}
	waitFlag(cmd, &wait)
	return cli.WithHelp(helpTexts, cmd)
}

// stagesOf parses the stages of a command line.
func stagesOf(args, known []string) ([]registry.Stage, error) {
	var stages []registry.Stage
	var faults []error
	for i, arg := range args {
		switch {
		case !slices.Contains(known, arg):
			faults = append(faults, exit.Usagef("unknown stage %q; stages: %s", arg, strings.Join(known, ", ")))
		case slices.Contains(args[:i], arg):
			faults = append(faults, exit.Usagef("stage %s is named twice", arg))
		}
		stages = append(stages, registry.Stage(arg))
	}
	return stages, errors.Join(faults...)
}

// BrokerCommand returns the command `holdfast broker`.
func BrokerCommand(a *cli.App) *cobra.Command {
	var o node.BrokerOptions
	var listen string
	cmd := &cobra.Command{
		Use: "broker", Short: "Run an NSQ broker in memory, for tests and small sites (production: nsqd)",
		Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runRole(cmd.Context(), a, "broker", nil, 0, "127.0.0.1:4151", nil, func(ctx context.Context, c config.Config, common node.Common, _ node.Work) (*node.Node, error) {
				o.Common, o.AuthSecret = common, c.NSQAuthSecret
				for name, address := range map[string]string{"--http-address": listen, "--tcp-address": o.TCP} {
					if address != "" && !config.IsListen(address) {
						return nil, exit.Usagef("%s %s: it must be an address to listen on, such as 127.0.0.1:4150", name, address)
					}
				}
				if listen != "" {
					o.Listen = listen
				}
				b, err := node.NewBroker(ctx, o)
				if err != nil {
					return nil, err
				}
				return b.Node, ready(a, "broker", "nsqd="+b.TCP(), "url="+b.URL())
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.TCP, "tcp-address", "127.0.0.1:4150", "address for NSQ clients")
	f.StringVar(&listen, "http-address", "", "address of /ping, /stats, /lookup, /nodes, /healthz (default HOLDFAST_LISTEN or 127.0.0.1:4151)")
	f.StringVar(&o.Broadcast, "broadcast-address", "", "the host in answers to lookups (default the one it listens on)")
	f.BoolVar(&o.Remote, "remote", false, "allow addresses that other machines can reach")
	f.Int64Var(&o.MaxMemory, "max-memory", 0, "the most `BYTES` of messages in memory; more are refused and sent again later (default 64 MiB)")
	f.DurationVar(&o.MaxMsgTimeout, "max-msg-timeout", 0, "the longest time that a consumer may hold a message (default 15m)")
	return cli.WithHelp(helpTexts, cmd)
}

func waitFlag(cmd *cobra.Command, wait *time.Duration) {
	cmd.Flags().DurationVar(wait, "wait", startWait, "how long to wait at start for services that do not answer")
}

// runRole reads the configuration, starts a process and attends to it. A process that is stopped
// before it is ready returns nil.
func runRole(
	ctx context.Context, a *cli.App, name string, serve []registry.Stage, wait time.Duration, listen string, required []string,
	begin func(context.Context, config.Config, node.Common, node.Work) (*node.Node, error),
) error {
	defaults := config.Default()
	defaults.Listen = listen
	c, faults := config.Load(ctx, defaults)
	common := common(a, c)
	common.Log = common.Log.With("role", name)
	common.Wait = wait
	common.Faults = errors.Join(faults, c.Require(name, required...))
	template, err := c.Template()
	if err != nil && common.Faults == nil {
		return err
	}
	warnUnknown(ctx, common.Log, c)
	// An attacker in this process would have them, too.
	if names := config.Unneeded(name, serve...); len(names) > 0 {
		common.Log.WarnContext(ctx, "this process has secrets that it does not use; remove them from its environment", "settings", names)
	}
	n, err := begin(ctx, c, common, work(a, c, template))
	switch {
	case n == nil && ctx.Err() != nil:
		return nil //nolint:nilerr // it was stopped
	case err != nil && n != nil:
		return errors.Join(err, n.Close()) //nolint:contextcheck // it drains although ctx is over
	case err != nil:
		return err
	}
	return attend(ctx, a, n)
}

// warnUnknown logs the names that look like settings and are none: as an error what is probably
// misspelt, because a limit or a secret may be off thereby.
func warnUnknown(ctx context.Context, log *slog.Logger, c config.Config) {
	for _, u := range c.Unknown {
		level := slog.LevelWarn
		if u.Misspelt() {
			level = slog.LevelError
		}
		log.Log(ctx, level, "an unknown setting has no effect", "setting", u.Name, "why", u.String())
	}
}

// ready prints on standard output that a role is ready.
func ready(a *cli.App, role string, words ...string) error {
	_, err := fmt.Fprintln(a.Out, role, strings.Join(words, " "))
	return err
}
