/** The weather at one place; degrees Celsius, percent, metres per second. */
export interface WeatherReport {
  readonly temperature: number
  readonly condition: string
  readonly description: string
  readonly humidity: number
  readonly feels_like: number
  readonly wind_speed: number
  /** Whether it was read from the cache. */
  readonly cached?: true
  /** Says that the figures are not a measurement. */
  readonly note?: string
}

/** What the model is told when there is no report; it never holds the key. */
interface WeatherFailure {
  readonly error: string
  readonly location: string
}

export type Weather = (
  location: string,
  signal?: AbortSignal,
) => Promise<WeatherReport | WeatherFailure>
