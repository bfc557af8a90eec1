import { metrics } from '@opentelemetry/api'
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'

/** A reader that collects when a test asks for it. */
class TestReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

/** One value of a metric. */
interface Measurement {
  readonly name: string
  readonly unit: string
  readonly attributes: Readonly<Record<string, unknown>>
  /** The sum or the level. For a histogram, the number of its values. */
  readonly value: number
}

/** The meter provider of this process, for one test. Open it before the bridge. */
export class TestMetrics implements AsyncDisposable {
  readonly #reader = new TestReader()
  readonly #provider = new MeterProvider({ readers: [this.#reader] })

  constructor() {
    metrics.setGlobalMeterProvider(this.#provider)
  }

  /** Collects all metrics of the bridge. */
  async collect(): Promise<Measurement[]> {
    const { resourceMetrics, errors } = await this.#reader.collect()
    if (errors.length > 0) throw new AggregateError(errors)
    const scopes = resourceMetrics.scopeMetrics.filter(
      ({ scope }) => scope.name === 'adk-stream-protocol',
    )
    return scopes.flatMap((scope) =>
      scope.metrics.flatMap(({ descriptor: { name, unit }, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => ({
          name,
          unit,
          attributes,
          value: typeof value === 'number' ? value : value.count,
        })),
      ),
    )
  }

  /** Collects the values of one metric, without its prefix. The keys are the values of its attributes. */
  async read(name: string): Promise<Record<string, number>> {
    const found = (await this.collect()).filter((one) => one.name === `adk_stream_protocol.${name}`)
    return Object.fromEntries(
      found.map(({ attributes, value }) => [Object.values(attributes).join(' '), value]),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    metrics.disable()
    await this.#provider.shutdown()
  }
}
