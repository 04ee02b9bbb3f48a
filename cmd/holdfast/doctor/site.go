package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// The roles. A worker's stage is a role, too.
const (
	roleUp       = "up"
	roleRegistry = "registry"
	roleWorker   = "worker"
)

// site is what is checked.
type site struct {
	config  config.Config
	faults  error // of the settings
	set     int   // settings that do not have their default
	role    string
	dir     string // of up; "" for other roles
	absent  bool   // dir is not there
	version string
	mailTo  string
	now     func() time.Time

	address    string      // of the service's /healthz; "": not known
	trust      *tls.Config // for it
	service    node.Client // URL "": there is no token
	api        *client.Client
	serviceErr error          // why the service is not known
	mailRoots  *x509.CertPool // for the mail server; nil: the machine's. Tests set it
}

// examine reads the configuration of this process and finds out what it is for.
func examine(ctx context.Context, a *cli.App, o options) *site {
	s := &site{role: o.role, version: a.Version, mailTo: o.mailTo, now: time.Now}
	settings, c, faults := config.InForce(ctx, config.Default())
	for _, setting := range settings {
		if setting.From != config.FromDefault {
			s.set++
		}
	}
	s.config, s.faults = c, faults
	if s.role == "" {
		switch {
		case a.Dir != "", c.URL == "" && c.DatabaseURL == "":
			s.role = roleUp
		case c.DatabaseURL != "":
			s.role = roleRegistry
		default:
			s.role = roleWorker
		}
	}
	switch s.role {
	case roleUp:
		s.dir = cmp.Or(a.Dir, cli.DefaultDir)
		_, err := os.Stat(s.dir)
		s.absent = errors.Is(err, fs.ErrNotExist)
	case roleRegistry:
		s.faults = errors.Join(s.faults, c.Require(s.role, config.RegistryNeeds...))
	default:
		s.faults = errors.Join(s.faults, c.Require(roleWorker, config.WorkerNeeds...))
	}
	s.address, s.trust, s.serviceErr = a.HealthAddress(ctx)
	switch {
	case s.role == roleRegistry && s.address == "" && c.URL == "":
		s.address, s.serviceErr = "http://"+config.DefaultListen, nil // where it listens if nothing is set
	case s.role != roleUp && s.role != roleRegistry:
		s.address = c.URL // a worker's own address is not the service's
	}
	if s.role == roleUp || c.URL != "" && c.Token != "" {
		at, err := a.Service()
		if err == nil {
			s.service = at
			s.api, err = a.ClientOf(at)
		}
		s.serviceErr = cmp.Or(s.serviceErr, err)
	}
	return s
}

// does reports whether the role has workers of a stage. A worker without a stage may have any.
func (s *site) does(stages ...registry.Stage) bool {
	switch s.role {
	case roleUp, roleWorker:
		return true
	case roleRegistry:
		return false
	}
	return slices.Contains(stages, registry.Stage(s.role))
}

// database returns the address of the Registry's database; "" if this role has none.
func (s *site) database() string {
	switch s.role {
	case roleUp:
		return cmp.Or(s.config.DatabaseURL, node.DatabaseIn(s.dir))
	case roleRegistry:
		return s.config.DatabaseURL
	}
	return ""
}

// flagDir names the folder of up, in which its own staging and storage lie.
const flagDir = "--dir"

// staging returns the address of the staging volume, or "", and the setting or flag that has it.
func (s *site) staging() (address, setting string) {
	if s.role == roleUp {
		return fileAddress(filepath.Join(s.dir, "staging")), flagDir
	}
	return s.config.StagingURL, settingStaging
}

// storages returns the preservation storages.
func (s *site) storages() (all []config.Storage) {
	if s.role == roleUp {
		all = append(all, config.Storage{Name: registry.DefaultStorage, Address: fileAddress(filepath.Join(s.dir, "storage"))})
	}
	more, err := s.config.Storages()
	if err != nil {
		return all // checkSettings reports it
	}
	return append(all, more...)
}

func fileAddress(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// checkSettings reports settings that would keep a process from starting.
func checkSettings(_ context.Context, s *site, r *report) {
	for _, err := range parts(s.faults) {
		r.add(Fault, err.Error(), "correct it; holdfast config shows what is in force, and docs/configuration.md describes each setting", exit.Usage)
	}
	for _, u := range s.config.Unknown {
		if u.Misspelt() {
			r.add(Fault, u.String(), "write the name as it is suggested, or remove it", exit.Usage)
		} else {
			r.warn(u.String(), "see whether it was written for another version, or for another program")
		}
	}
	if s.absent {
		r.add(Fault, "there is no folder "+s.dir, "start holdfast up, name its folder by --dir, or call the doctor with the environment of a Registry or a worker", exit.Usage)
	}
	unneeded := config.Unneeded(s.role)
	if s.role != roleUp && s.role != roleRegistry && s.role != roleWorker {
		unneeded = config.Unneeded(roleWorker, registry.Stage(s.role))
	}
	unneeded = slices.DeleteFunc(unneeded, func(name string) bool {
		return name == config.Prefix+"_TOKEN" || s.role == roleWorker // the doctor itself uses the token; the worker's stage is not known
	})
	if len(unneeded) > 0 {
		r.warn("this process has secrets that "+s.role+" does not use: "+strings.Join(unneeded, ", "), "remove them: whoever breaks into the process has them, too")
	}
	if len(r.list) == 0 {
		r.ok("checked as %s; %s, the others have their defaults", s.role, terminal.Plural(int64(s.set), "setting is set", "settings are set"))
	}
}

// parts returns the errors that are joined in err; none for nil.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	return exit.Parts(err)
}
