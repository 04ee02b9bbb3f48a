package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/unpack"
)

// askedAtOnce is how many requests to sources run at the same time.
const askedAtOnce = 16

// The rules on files at sources.
const (
	ruleRemoteMissing     = "remote-missing"     // the file does not exist
	ruleRemoteSize        = "remote-size"        // its size differs
	ruleRemoteRefused     = "remote-refused"     // the address is not allowed
	ruleRemoteNotAsked    = "remote-not-asked"   // a warning: only the service has the credentials to ask
	ruleRemoteUnreachable = "remote-unreachable" // the source could not be asked, or did not answer
)

// remote is a file at a source.
type remote struct {
	url  string
	size int64 // -1 if unknown
	at   Fault // the place where it is listed
}

// askManifest asks for the file of every usable row.
func askManifest(ctx context.Context, v *Report, in unpack.Input, t registry.PayloadType, o Options) error {
	if o.Remote == nil || v.whole {
		return nil
	}
	r, err := in.Open(ctx, 0, in.Size)
	if err != nil {
		return fmt.Errorf("open the manifest: %w", err)
	}
	defer r.Close()
	rows := checkm.NewReader(r, checkm.Options{Kind: checkm.Kind(t)})
	return ask(ctx, v, o.Remote, func(each func(remote) error) error {
		for {
			row, faults, err := rows.Next()
			if errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("read the manifest: %w", err)
			}
			if checkm.Refused(faults) {
				continue
			}
			if err := each(remote{url: row.URL, size: row.Size, at: Fault{Line: row.Line, File: row.Name}}); err != nil {
				return err
			}
		}
	})
}

// askBag asks for every missing file of a bag.
func askBag(ctx context.Context, v *Report, report *bagit.Report, o Options) error {
	if o.Remote == nil {
		return nil
	}
	return ask(ctx, v, o.Remote, func(each func(remote) error) error {
		for _, e := range report.Fetch {
			if e.Present {
				continue
			}
			at := Fault{File: e.File, Source: bagit.FetchFile}
			if err := each(remote{url: e.URL, size: e.Length, at: at}); err != nil {
				return err
			}
		}
		return nil
	})
}

// ask asks sources for all files, several at the same time.
func ask(ctx context.Context, v *Report, f source.Fetcher, all func(each func(remote) error) error) error {
	var mu sync.Mutex
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(askedAtOnce)
	err := all(func(r remote) error {
		group.Go(func() error {
			fault, wrong := askOne(gctx, f, r)
			if wrong && gctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				v.add(fault)
			}
			return gctx.Err()
		})
		return gctx.Err()
	})
	if stopped := group.Wait(); err == nil {
		err = stopped
	}
	return err
}

// askOne asks for one file and returns its fault, if any.
func askOne(ctx context.Context, f source.Fetcher, r remote) (fault Fault, wrong bool) {
	fault = r.at
	if strings.HasPrefix(strings.ToLower(r.url), source.S3Scheme+":") {
		fault.Severity, fault.Rule = Warning, ruleRemoteNotAsked
		fault.Message = "it is in S3, and the collection's credential for it is not available here"
		return fault, true
	}
	info, err := f.Head(ctx, r.url)
	fault.Severity = Error
	var said *source.Error
	switch {
	case err == nil && (r.size < 0 || info.Size < 0 || info.Size == r.size):
		return fault, false
	case err == nil:
		fault.Rule, fault.Expected = ruleRemoteSize, fmt.Sprintf("%d bytes", r.size)
		fault.Found, fault.Fix = fmt.Sprintf("%d bytes at the source", info.Size), "correct the size, or put the right file there"
	default: // the error says what to do
		fault.Rule, fault.Message = ruleRemoteUnreachable, err.Error()
		if fault.Unreachable = !errors.As(err, &said) || !said.ContentFault(); fault.Unreachable {
			break
		}
		if fault.Rule = ruleRemoteRefused; said.Kind == source.FaultMissing {
			fault.Rule = ruleRemoteMissing
		}
	}
	return fault, true
}
