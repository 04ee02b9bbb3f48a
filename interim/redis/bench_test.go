package redis_test

import (
	"fmt"
	"testing"

	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/interim/redis"
	"github.com/holdfast/holdfast/interim/redis/redistest"
)

func BenchmarkAdopt360000(b *testing.B) {
	s, err := redis.Open(redistest.Start(b).URL(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	value := make([]byte, 400)
	for from := 0; from < 360_000; from += 1000 {
		entries := map[string][]byte{}
		for i := range 1000 {
			entries[fmt.Sprintf("file/producer/folder/%08d.tiff", from+i)] = value
		}
		if err := s.Put(b.Context(), interim.Attempt{ItemID: "item", N: 1}, entries); err != nil {
			b.Fatal(err)
		}
	}
	for n := int64(2); b.Loop(); n++ {
		if _, err := s.Adopt(b.Context(), interim.Attempt{ItemID: "item", N: n}); err != nil {
			b.Fatal(err)
		}
	}
}
