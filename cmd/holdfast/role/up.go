package role

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
)

// UpCommand returns the command `holdfast up`.
func UpCommand(a *cli.App) *cobra.Command {
	var dir, listen, paused string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run everything in one process on one folder",
		Args:  cli.Needs(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return runUp(cmd.Context(), a, dir, listen, paused) },
	}
	cmd.Flags().StringVar(&dir, "dir", cli.DefaultDir, "the folder for all data; created if missing")
	cmd.Flags().StringVar(&listen, "listen", "", "address of API and pages (default HOLDFAST_LISTEN or "+config.DefaultListen+")")
	cmd.Flags().StringVar(&paused, "paused", "", "start with everything paused until queue resume, with this reason")
	return cli.WithHelp(helpTexts, cmd)
}

func runUp(ctx context.Context, a *cli.App, dir, listen, paused string) error {
	defaults := config.DefaultUp()
	if terminal.IsTerminal(a.Err) {
		defaults.LogLevel = slog.LevelWarn // a person watches: the pages show successes
	}
	c, err := config.Load(ctx, defaults)
	if err != nil {
		return err
	}
	if listen == "" {
		listen = c.Listen
	} else if !config.IsListen(listen) {
		return exit.Usagef("--listen %s: it must be an address to listen on, such as %s", listen, config.DefaultListen)
	}
	template, err := c.Template()
	if err != nil {
		return err
	}
	receipts, err := c.Receipts()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(storages(c), func(s node.Storage) bool { return s.Name == registry.DefaultStorage }) {
		return exit.Usagef("HOLDFAST_STORAGE_URL: up has its own storage, %s, in the folder of --dir; name the other one"+
			" another name, as in second=s3://BUCKET/PREFIX, and name it in the collections that are to use it, or leave the variable out", registry.DefaultStorage)
	}
	plan, err := backups(ctx, a, c, dir)
	if err != nil {
		return err
	}
	begun := time.Now()
	c.Listen = listen
	common := common(a, c)
	warnUnknown(ctx, common.Log, c)
	n, err := node.Up(ctx, node.UpOptions{Backups: plan, Common: common, Work: work(a, c, template), Web: web(c), Dir: dir, Paused: paused, Storages: storages(c), NSQ: nsq(c), Database: c.DatabaseURL, SecretKey: c.SecretKey, ReceiptKey: receipts})
	if err != nil {
		return fmt.Errorf("start on %s: %w", dir, err)
	}
	if err := greet(ctx, a, n, dir); err != nil {
		return errors.Join(err, n.Close()) //nolint:contextcheck // likewise
	}
	a.Note("ready after %s; Ctrl-C stops it", time.Since(begun).Round(time.Millisecond))
	return attend(ctx, a, n)
}

// greet prints the address in two lines, for scripts. It prints the sign-in link on a terminal
// only: the link makes its user an admin, and the output of service managers and containers is
// logged.
func greet(ctx context.Context, a *cli.App, n *node.Node, dir string) error {
	way := "Sign in:    holdfast login --dir " + node.ShellWord(dir)
	if terminal.IsTerminal(a.Out) {
		link, err := n.SignInLink(ctx)
		if err != nil {
			return err
		}
		way = "Login link: " + link + "\n            good once, within ten minutes; holdfast login --dir " + node.ShellWord(dir) + " prints another"
	}
	_, err := fmt.Fprintf(a.Out, "Holdfast:   %s/\n%s\n", n.URL(), way)
	return err
}
