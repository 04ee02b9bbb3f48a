package config

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/holdfast/holdfast/awschain"
)

// maxFile is the most bytes that a configuration file may have.
const maxFile = 1 << 20

// sourceTimeout bounds the time that the sources of the configuration may take.
const sourceTimeout = 30 * time.Second

// awsPrefix begins the names of the AWS SDK's settings, which a configuration file may have, too.
const awsPrefix = "AWS_"

// origins tells where a setting that does not come from the environment does come from, by its name.
type origins map[string]string

// fill sets a variable of the process's environment that is not set or empty, and remembers where its
// value comes from. All else reads the environment, so that every setting is read in one way.
func (o origins) fill(name, value, from string) error {
	if os.Getenv(name) != "" || value == "" {
		return nil
	}
	if err := os.Setenv(name, value); err != nil {
		return fmt.Errorf("%s: %s: %w", from, name, err)
	}
	o[name] = from
	return nil
}

// gather fills the environment from the file that HOLDFAST_CONFIG_FILE names, then from the parameters
// below the paths of HOLDFAST_PARAMETERS if ask then returns true. The first value of a setting counts.
func gather(ctx context.Context, ask func() bool) (origins, []error) {
	o := origins{}
	var faults []error
	if path := os.Getenv(Prefix + "_CONFIG_FILE"); path != "" {
		faults = append(faults, o.readFile(path)...)
	}
	paths := trimmed(strings.Split(os.Getenv(Prefix+"_PARAMETERS"), ","))
	if len(paths) == 0 || !ask() {
		return o, faults
	}
	c, err := awschain.Load(ctx, nil) // there is no log before the settings are known
	if err != nil {
		return o, append(faults, fmt.Errorf("%s_PARAMETERS: %w", Prefix, err))
	}
	store := ssm.NewFromConfig(c)
	for _, path := range paths {
		if err := o.readParameters(ctx, store, path); err != nil {
			faults = append(faults, fmt.Errorf("%s_PARAMETERS: read the parameters below %s: %w", Prefix, path, err))
		}
	}
	return o, faults
}

// readFile reads a configuration file: lines of NAME=VALUE, empty lines, and comments, which begin
// with #. A value may stand in quotes; nothing in it is replaced.
func (o origins) readFile(path string) (faults []error) {
	f, err := os.Open(path)
	if err != nil {
		return []error{fmt.Errorf("%s_CONFIG_FILE: %w", Prefix, err)}
	}
	defer f.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(io.LimitReader(f, maxFile))
	lines.Buffer(nil, maxFile)
	seen := map[string]int{}
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		from := fmt.Sprintf("%s, line %d", path, n)
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		switch {
		case !ok:
			// The line may be a part of a secret.
			faults = append(faults, fmt.Errorf("%s: not of the form NAME=VALUE", from))
		case !strings.HasPrefix(name, Prefix+"_") && !strings.HasPrefix(name, awsPrefix):
			faults = append(faults, fmt.Errorf("%s: %s: a configuration file has names that begin with %s_ or %s", from, name, Prefix, awsPrefix))
		case name == Prefix+"_CONFIG_FILE":
			faults = append(faults, fmt.Errorf("%s: a configuration file cannot name another one", from))
		case seen[name] > 0:
			faults = append(faults, fmt.Errorf("%s: %s is in line %d, too; remove one of them", from, name, seen[name]))
		default:
			seen[name] = n
			if err := o.fill(name, unquoted(strings.TrimSpace(value)), from); err != nil {
				faults = append(faults, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		faults = append(faults, fmt.Errorf("%s_CONFIG_FILE: read %s: %w", Prefix, path, err))
	}
	return faults
}

// unquoted removes the quotes around a value.
func unquoted(value string) string {
	for _, quote := range []string{`"`, `'`} {
		if inner, ok := strings.CutPrefix(value, quote); ok {
			if inner, ok = strings.CutSuffix(inner, quote); ok {
				return inner
			}
		}
	}
	return value
}

// readParameters reads the parameters directly below a path of AWS Systems Manager Parameter Store,
// decrypted: /holdfast/NAAN is HOLDFAST_NAAN.
func (o origins) readParameters(ctx context.Context, store *ssm.Client, path string) error {
	if !strings.HasPrefix(path, "/") {
		return errors.New("a path begins with /")
	}
	pages := ssm.NewGetParametersByPathPaginator(store, &ssm.GetParametersByPathInput{Path: &path, WithDecryption: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, p := range page.Parameters {
			full := aws.ToString(p.Name)
			name := full[strings.LastIndex(full, "/")+1:]
			if err := o.fill(Prefix+"_"+name, aws.ToString(p.Value), "parameter "+full); err != nil {
				return err
			}
		}
	}
	return nil
}
