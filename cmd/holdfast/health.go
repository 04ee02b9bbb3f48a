package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/registry/wire"
)

// healthTimeout is how long a service may take to say that it is well.
const healthTimeout = 5 * time.Second

func (a *app) healthCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use:   "health",
		Short: "Ask whether a service is well; exit code 0 or 5",
		Long: "Ask the service's /healthz. Which service: the one of --dir, else the one that listens at HOLDFAST_LISTEN, else\n" +
			"the one at HOLDFAST_URL, else the one of " + defaultDir + ".",
		Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.health(cmd.Context()) },
	})
}

func (a *app) health(ctx context.Context) error {
	address, err := a.healthAddress()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	h, err := askHealth(ctx, address)
	if err != nil {
		a.complain(fmt.Errorf("ask %s: %w", address, err))
		return exitTemporary
	}
	if a.json {
		if err := a.printJSON(h); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintln(a.out, strings.TrimSpace(h.Status+" "+h.Version)); err != nil {
		return err
	}
	if h.Status != "ok" {
		return exitTemporary
	}
	return nil
}

// askHealth asks a service of any role; only the Registry has an API beside it.
func askHealth(ctx context.Context, address string) (wire.Health, error) {
	var h wire.Health
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/healthz", nil)
	if err != nil {
		return h, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return h, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return h, fmt.Errorf("it answered %s", answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&h); err != nil {
		return h, fmt.Errorf("read its answer: %w", err)
	}
	return h, nil
}

func (a *app) healthAddress() (string, error) {
	defaults := config.Default()
	defaults.Listen = "" // so as to see whether it is set
	c, err := config.Load(defaults)
	if err != nil {
		return "", err
	}
	switch {
	case a.dir != "":
	case c.Listen != "":
		return localURL(c.Listen), nil
	case c.URL != "":
		return c.URL, nil
	}
	at, err := a.clientOf(a.dir)
	return at.URL, err
}
