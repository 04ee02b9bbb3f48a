// Package setup has the command setup, which makes the keys, passwords and first tokens of an
// installation. It keeps them in one file, keys.json, and makes every other file from that.
//
// The order makes it safe to repeat after a death at any point. A secret is durable in keys.json
// before anything is made from it, and its token is entered into the database only if it is not
// there.
package setup

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/web/api/account"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

//go:embed help/*.txt
var helpTexts embed.FS

// ConfigFile is the name of a role's configuration file in its folder.
const ConfigFile = "holdfast.env"

const (
	keysFile                  = "keys.json"
	private       fs.FileMode = 0o600
	privateFolder fs.FileMode = 0o700
	// PostgreSQL and Redis are other users, of our group.
	grouped       fs.FileMode = 0o640
	groupedFolder fs.FileMode = 0o750
)

// Names in keys.json, beside those of tokens.
const (
	secretKey        = "SECRET_KEY"
	receiptKey       = "RECEIPT_KEY"
	postgresPassword = "POSTGRES_PASSWORD"
	redisPassword    = "REDIS_PASSWORD"
	admin            = "ADMIN"
	adminShown       = "TOKEN_ADMIN_SHOWN"
)

// tokenOf is the name in keys.json of the token of a stage or of the admin.
func tokenOf(holder string) string { return "TOKEN_" + strings.ToUpper(holder) }

// renewKey is the value of --renew for the key that encrypts credentials.
const renewKey = "secret-key"

// Command returns the command `holdfast setup`.
func Command(a *cli.App) *cobra.Command {
	var renew []string
	keys := &cobra.Command{
		Use: "keys FOLDER", Short: "Make keys, passwords and tokens, and a file for each role", Args: cli.Needs("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error { return makeKeys(cmd.Context(), a, args[0], renew) },
	}
	keys.Flags().StringSliceVar(&renew, "renew", nil, "make another token for this `STAGE`, or another secret-key beside the earlier ones; repeatable")
	tokens := &cobra.Command{
		Use: "tokens FOLDER", Short: "Enter the tokens of a folder into the database", Args: cli.Needs("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error { return enterTokens(cmd.Context(), a, args[0]) },
	}
	return cli.WithHelp(helpTexts, cli.Group("setup", "Make the keys, passwords and first tokens of an installation", keys, tokens))
}

// Roles returns the names of the folders with configuration files, and the secrets that each has, by
// their variables.
func Roles() map[string][]string {
	roles := map[string][]string{}
	add := func(folder, role string, stages ...registry.Stage) {
		for _, name := range config.Secrets(role, stages...) {
			if slices.Contains(made, name) {
				roles[folder] = append(roles[folder], name)
			}
		}
	}
	add("registry", "registry")
	add("migrate", "migrate")
	for _, s := range registry.Stages() {
		add(string(s), "worker", s)
	}
	return roles
}

// made are the variables with the secrets that setup makes.
var made = []string{"HOLDFAST_DATABASE_URL", "HOLDFAST_REDIS_URL", "HOLDFAST_SECRET_KEY", "HOLDFAST_RECEIPT_KEY", "HOLDFAST_TOKEN"}

func makeKeys(ctx context.Context, a *cli.App, folder string, renew []string) (err error) {
	c, err := a.Settings(ctx, config.Default(), config.SetupNeeds...)
	if err = errors.Join(err, c.Require("setup keys", config.SetupNeeds...)); err != nil {
		return err
	}
	for _, s := range renew {
		if s != renewKey && !slices.Contains(registry.Stages(), registry.Stage(s)) {
			return exit.Usagef("--renew %s: neither %s nor a stage; stages: %v", s, renewKey, registry.AllOf(registry.Stages()))
		}
	}
	if err := os.MkdirAll(folder, privateFolder); err != nil {
		return err
	}
	return locked(folder, func(keys map[string]string) error {
		for _, s := range renew {
			if s == renewKey {
				keys[secretKey] = strings.TrimSuffix(password()+","+keys[secretKey], ",") // the earlier ones still decrypt
			} else {
				delete(keys, tokenOf(s))
			}
		}
		return writeAll(a, folder, c, keys)
	})
}

// password returns a new password or key. It has letters and digits only, because it becomes a part of
// addresses and of configuration files.
func password() string { return rand.Text() + rand.Text() }

// locked calls act with the content of keys.json while no other setup works on the folder.
func locked(folder string, act func(keys map[string]string) error) (err error) {
	lock, err := node.TakeLock(filepath.Join(folder, "lock"))
	if err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	keys := map[string]string{}
	text, err := os.ReadFile(filepath.Join(folder, keysFile))
	if err == nil {
		if err = json.Unmarshal(text, &keys); err != nil {
			return fmt.Errorf("read %s: %w", filepath.Join(folder, keysFile), err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return act(keys)
}

// keep writes keys.json.
func keep(folder string, keys map[string]string) error {
	text, err := json.MarshalIndent(keys, "", "  ")
	if err != nil {
		return err
	}
	return node.WriteFile(filepath.Join(folder, keysFile), append(text, '\n'), private)
}

// writeAll adds missing secrets to keys.json, and then writes the files that are made from it.
func writeAll(a *cli.App, folder string, c config.Config, keys map[string]string) error {
	had := maps.Clone(keys)
	add := func(name string, fresh func() string) {
		if keys[name] == "" {
			keys[name] = fresh()
		}
	}
	add(secretKey, password)
	add(receiptKey, receipt.NewKey)
	for _, s := range registry.Stages() {
		add(tokenOf(string(s)), signin.NewSecret)
	}
	if keys[adminShown] == "" {
		add(tokenOf(admin), signin.NewSecret)
	}
	add(postgresPassword, password)
	add(redisPassword, password)
	database, err := withPassword(c.DatabaseURL, keys[postgresPassword])
	if err != nil {
		return fmt.Errorf("HOLDFAST_DATABASE_URL: %w", err)
	}
	redis, err := withPassword(c.RedisURL, keys[redisPassword])
	if err != nil {
		return fmt.Errorf("HOLDFAST_REDIS_URL: %w", err)
	}
	if !maps.Equal(keys, had) {
		if err := keep(folder, keys); err != nil {
			return err
		}
	}
	f := files{folder: folder}
	for role, names := range Roles() {
		values := map[string]string{
			"HOLDFAST_DATABASE_URL": database, "HOLDFAST_REDIS_URL": redis, "HOLDFAST_TOKEN": keys[tokenOf(role)],
			"HOLDFAST_SECRET_KEY": keys[secretKey], "HOLDFAST_RECEIPT_KEY": keys[receiptKey],
		}
		var text strings.Builder
		text.WriteString("# Made by holdfast setup from keys.json; changes are lost.\n")
		for _, name := range names {
			fmt.Fprintf(&text, "%s=%s\n", name, values[name])
		}
		f.write(role, ConfigFile, text.String(), privateFolder, private)
	}
	f.write("postgres", "password", keys[postgresPassword]+"\n", groupedFolder, grouped)
	f.write("redis", "password", keys[redisPassword]+"\n", groupedFolder, grouped)
	f.write("redis", "redis.conf", "requirepass "+keys[redisPassword]+"\n", groupedFolder, grouped)
	if f.err != nil {
		return f.err
	}
	if f.written == 0 {
		_, err = fmt.Fprintln(a.Out, "keys and passwords are there; nothing to do")
	} else {
		_, err = fmt.Fprintf(a.Out, "keys and passwords are in %s, %d files of roles new or changed; keep a copy of %s elsewhere\n", folder, f.written, keysFile)
	}
	return err
}

// withPassword returns an address with a password, unless it has one or is that of a file or socket.
func withPassword(address, password string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("no address") // the cause has the address
	}
	if _, given := u.User.Password(); given || u.Host == "" {
		return address, nil
	}
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String(), nil
}

// files writes files below a folder until one fails.
type files struct {
	folder  string
	written int
	err     error
}

// write makes a file in a folder of its own, unless it is there with this content.
func (f *files) write(below, name, text string, folderMode, mode fs.FileMode) {
	if f.err != nil {
		return
	}
	folder := filepath.Join(f.folder, below)
	if f.err = os.MkdirAll(folder, folderMode); f.err != nil {
		return
	}
	if f.err = os.Chmod(folder, folderMode); f.err != nil { // the umask may have taken a part
		return
	}
	path := filepath.Join(folder, name)
	there, err := os.ReadFile(path)
	if err == nil && string(there) == text {
		f.err = os.Chmod(path, mode)
		return
	}
	f.err = node.WriteFile(path, []byte(text), mode)
	f.written++
}

func enterTokens(ctx context.Context, a *cli.App, folder string) error {
	c, err := a.Settings(ctx, config.Default(), config.DatabaseNeeds...)
	if err = errors.Join(err, c.Require("setup tokens", config.DatabaseNeeds...)); err != nil {
		return err
	}
	return locked(folder, func(keys map[string]string) (err error) {
		s, closeAll, err := node.OpenDatabase(ctx, c.DatabaseURL, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeAll()) }()
		entered := 0
		enter := func(secret string, r wire.TokenRequest) error {
			if secret == "" {
				return exit.Fix(fmt.Errorf("%s has no token for %s", filepath.Join(folder, keysFile), r.Name), "run holdfast setup keys first")
			}
			fresh, err := enterToken(ctx, s, r, secret)
			if fresh {
				entered++
			}
			return err
		}
		for _, stage := range registry.Stages() {
			r := wire.TokenRequest{Name: "worker-" + string(stage), Role: string(registry.RoleWorker), Stages: []registry.Stage{stage}}
			if err := enter(keys[tokenOf(string(stage))], r); err != nil {
				return err
			}
		}
		if keys[adminShown] == "" {
			secret := keys[tokenOf(admin)]
			if err := enter(secret, wire.TokenRequest{Name: "admin", Role: string(registry.RoleAdmin)}); err != nil {
				return err
			}
			if _, err := fmt.Fprintf(a.Out, "The admin's token, shown only now; sign in to the pages with it, or set HOLDFAST_TOKEN:\n\n  %s\n\n", secret); err != nil {
				return err
			}
			delete(keys, tokenOf(admin))
			keys[adminShown] = "yes"
			if err := keep(folder, keys); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(a.Out, "tokens are in the database, %d of them new\n", entered)
		return err
	})
}

// mostNames limits the numbers that are appended to a name that was used before.
const mostNames = 1000

// enterToken makes a token with a secret, unless it is there. If the name is taken, it appends the
// first free number.
func enterToken(ctx context.Context, s account.Registry, r wire.TokenRequest, secret string) (fresh bool, err error) {
	if _, err := s.TokenByHash(ctx, signin.Hash(secret)); !errors.Is(err, registry.ErrNotFound) {
		return false, err
	}
	name := r.Name
	_, err = account.MakeToken(ctx, s, r, secret, "holdfast setup")
	for n := 2; errors.Is(err, registry.ErrNameTaken) && n <= mostNames; n++ {
		r.Name = fmt.Sprintf("%s-%d", name, n)
		_, err = account.MakeToken(ctx, s, r, secret, "holdfast setup")
	}
	if err != nil {
		return false, exit.Fix(fmt.Errorf("enter the token of %s: %w", name, err), "if it was revoked, make another one with holdfast setup keys --renew")
	}
	return true, nil
}
