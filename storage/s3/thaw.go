package s3

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// archives are the storage classes whose objects must be restored before they can be read.
var archives = []types.StorageClass{types.StorageClassGlacier, types.StorageClassDeepArchive}

// Thaw implements storage.Store by RestoreObject, in the standard tier. It asks HEAD first, so that
// a repeat requests nothing and costs nothing.
func (s *Store) Thaw(ctx context.Context, key string, keep time.Duration) (readable bool, err error) {
	if err := s.check(key); err != nil {
		return false, fmt.Errorf("thaw: %w", err)
	}
	name := s.name(key)
	have, err := s.head(ctx, name)
	if err != nil {
		return false, wrap("thaw", key, err)
	}
	tiered := have.ArchiveStatus != "" // in an archive of Intelligent-Tiering, from which an object comes back permanently
	if !tiered && !slices.Contains(archives, have.StorageClass) {
		return true, nil
	}
	switch restore := aws.ToString(have.Restore); {
	case strings.Contains(restore, `ongoing-request="true"`):
		return false, nil
	case strings.Contains(restore, `ongoing-request="false"`):
		return true, nil
	case keep <= 0:
		return false, nil
	}
	ask := &types.RestoreRequest{GlacierJobParameters: &types.GlacierJobParameters{Tier: types.TierStandard}}
	if !tiered {
		ask.Days = aws.Int32(int32((keep + day - 1) / day))
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	_, err = s.client.RestoreObject(ctx, &s3.RestoreObjectInput{Bucket: &s.at.bucket, Key: &name, RestoreRequest: ask})
	switch code(err) {
	case "RestoreAlreadyInProgress": // another caller has requested it meanwhile
		return false, nil
	case "ObjectAlreadyInActiveTierError":
		return true, nil
	}
	return false, wrap("thaw", key, err)
}

const day = 24 * time.Hour
