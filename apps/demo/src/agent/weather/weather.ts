/** The weather at one place, in degrees Celsius, percent and metres per second. */
export interface WeatherReport {
  readonly temperature: number
  readonly condition: string
  readonly description: string
  readonly humidity: number
  readonly feels_like: number
  readonly wind_speed: number
  /** Whether it was read from the cache. */
  readonly cached?: true
  /** States that the values are not measured. */
  readonly note?: string
}

/** The result if there is no report. It never contains the API key. */
interface WeatherFailure {
  readonly error: string
  readonly location: string
}

export type Weather = (
  location: string,
  signal?: AbortSignal,
) => Promise<WeatherReport | WeatherFailure>
