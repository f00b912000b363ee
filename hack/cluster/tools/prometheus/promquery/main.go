// promquery evaluates queries of PromQL on what was scraped: a request as JSON on standard input, the results as JSON on standard
// output. The engine, the parser and the storage are Prometheus' own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
)

// request has times in milliseconds since 1970.
type request struct {
	Scrapes []struct {
		At       int64
		Instance string
		Text     string
	}
	Queries          []string
	Start, End, Step int64
}

type series struct {
	Labels map[string]string `json:"labels"`
	// Pairs of milliseconds and value; a value that is not a number is null.
	Points [][2]*float64 `json:"points"`
}

type result struct {
	Series []series `json:"series"`
	Error  string   `json:"error,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "promquery:", err)
		os.Exit(1)
	}
}

func run() error {
	var asked request
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "promquery")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	db, err := tsdb.Open(directory, nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, scrape := range asked.Scrapes {
		if err := store(db, scrape.At, scrape.Instance, []byte(scrape.Text)); err != nil {
			return fmt.Errorf("scrape at %d: %w", scrape.At, err)
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	results := make([]result, len(asked.Queries))
	for i, query := range asked.Queries {
		results[i] = evaluated(engine, db, query, asked)
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

// store appends the samples of one scrape, with the label instance.
func store(db *tsdb.DB, at int64, instance string, text []byte) error {
	found, err := textparse.New(text, "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return err
	}
	appender := db.Appender(context.Background())
	for {
		entry, err := found.Next()
		if errors.Is(err, io.EOF) {
			return appender.Commit()
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, value := found.Series()
		var named labels.Labels
		found.Labels(&named)
		named = labels.NewBuilder(named).Set("instance", instance).Labels()
		if _, err := appender.Append(0, named, at, value); err != nil {
			return err
		}
	}
}

func evaluated(engine *promql.Engine, db *tsdb.DB, query string, asked request) result {
	step := time.Duration(asked.Step) * time.Millisecond
	prepared, err := engine.NewRangeQuery(context.Background(), db, nil, query, time.UnixMilli(asked.Start), time.UnixMilli(asked.End), step)
	if err != nil {
		return result{Error: err.Error()}
	}
	defer prepared.Close()
	matrix, err := prepared.Exec(context.Background()).Matrix()
	if err != nil {
		return result{Error: err.Error()}
	}
	answer := result{Series: []series{}}
	for _, one := range matrix {
		found := series{Labels: one.Metric.Map()}
		for _, point := range one.Floats {
			at, value := float64(point.T), point.F
			if value != value {
				found.Points = append(found.Points, [2]*float64{&at, nil})
			} else {
				found.Points = append(found.Points, [2]*float64{&at, &value})
			}
		}
		answer.Series = append(answer.Series, found)
	}
	return answer
}
