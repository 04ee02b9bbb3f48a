package node

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
)

// Intervals of requests for the spot notice, which comes two minutes ahead. Where nothing answers,
// as on a laptop and on Fargate, the interval grows.
const (
	spotEvery   = 5 * time.Second
	spotSeldom  = 5 * time.Minute
	spotTimeout = 2 * time.Second
)

// watchSpot polls the instance's metadata, by IMDSv2, until there is a spot notice or ctx ends. It
// returns whether there is one, and logs nothing on machines without such metadata. AWS's own
// settings apply: AWS_EC2_METADATA_DISABLED and AWS_EC2_METADATA_SERVICE_ENDPOINT.
func watchSpot(ctx context.Context, log *slog.Logger) bool {
	if strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		return false
	}
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: time.Second}).DialContext} // without a proxy
	defer transport.CloseIdleConnections()
	client := imds.New(imds.Options{
		HTTPClient: &http.Client{Timeout: spotTimeout, Transport: transport}, Retryer: aws.NopRetryer{}, EnableFallback: aws.FalseTernary,
	})
	for wait := spotEvery; ; {
		action, at, err := spotNotice(ctx, client)
		var answered interface{ HTTPStatusCode() int }
		switch {
		case err == nil:
			log.WarnContext(ctx, "EC2 takes this machine; draining", "action", action, "at", at)
			return true
		case errors.As(err, &answered) && answered.HTTPStatusCode() == http.StatusNotFound:
			wait = spotEvery // no notice
		default:
			log.DebugContext(ctx, "no instance metadata", "err", err, "asked_again_after", wait)
			wait = min(2*wait, spotSeldom)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// spotNotice returns what EC2 will do with the machine, and when.
func spotNotice(ctx context.Context, client *imds.Client) (action, at string, err error) {
	answer, err := client.GetMetadata(ctx, &imds.GetMetadataInput{Path: "spot/instance-action"})
	if err != nil {
		return "", "", err
	}
	defer answer.Content.Close()
	var notice struct {
		Action string `json:"action"` // terminate, stop or hibernate
		Time   string `json:"time"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Content, 1<<16)).Decode(&notice); err != nil {
		return "", "", err
	}
	if notice.Action == "" {
		return "", "", errors.New("a spot notice without an action")
	}
	return notice.Action, notice.Time, nil
}
