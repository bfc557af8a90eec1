import { trace } from '@opentelemetry/api'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'

const KEY = Symbol.for('adk-stream-protocol.test.spans')

/** Records spans from now on. ADK keeps the tracer of the first provider of its process, so all test files share one. */
export function recordSpans(): InMemorySpanExporter {
  const known: unknown = Reflect.get(globalThis, KEY)
  if (known instanceof InMemorySpanExporter) {
    known.reset()
    return known
  }
  const exporter = new InMemorySpanExporter()
  Reflect.set(globalThis, KEY, exporter)
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  trace.setGlobalTracerProvider(provider)
  return exporter
}
