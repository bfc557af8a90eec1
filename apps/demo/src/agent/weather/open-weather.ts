import { z } from 'zod'

import { createTtlCache } from './ttl-cache.ts'
import type { Weather, WeatherReport } from './weather.ts'

export interface OpenWeatherOptions {
  readonly apiKey: string
  /** Default `https://api.openweathermap.org`. */
  readonly baseUrl?: string
  /** The timeout of a request, in ms. Default 5000. */
  readonly timeoutMs?: number
  /** How long a report is cached, in ms. Default 600,000 (ten minutes). */
  readonly ttlMs?: number
  /** A monotonic clock, in ms. Default `performance.now`. */
  readonly now?: () => number
}

/** Reads the weather from OpenWeatherMap. Returns a failure as a result, so that the model can report it. */
export function createOpenWeather(options: OpenWeatherOptions): Weather {
  const { baseUrl = 'https://api.openweathermap.org', timeoutMs = 5000, ttlMs = 600_000 } = options
  const now = options.now ?? (() => performance.now())
  const cache = createTtlCache<WeatherReport>({ ttlMs, capacity: 200, now })

  return async (location, signal) => {
    const key = location.trim().toLowerCase()
    const known = cache.get(key)
    if (known) return { ...known, cached: true }

    const url = new URL('/data/2.5/weather', baseUrl)
    url.search = new URLSearchParams({
      q: location,
      units: 'metric',
      appid: options.apiKey,
    }).toString()
    const deadline = AbortSignal.timeout(timeoutMs)
    try {
      const response = await fetch(url, {
        signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
      })
      if (!response.ok) return { error: explainStatus(response.status), location }
      const fresh = readReport(await response.json())
      if (!fresh) return { error: 'The weather service sent an unknown format.', location }
      cache.set(key, fresh)
      return fresh
    } catch {
      // The cause may contain the URL with the key, so the model must not receive it.
      if (deadline.aborted)
        return { error: 'The weather service did not answer in time.', location }
      return { error: 'The weather service cannot be reached.', location }
    }
  }
}

function explainStatus(status: number): string {
  if (status === 404) return 'The weather service does not know this place.'
  return `The weather service answered with status ${status}.`
}

const OpenWeatherBody = z.object({
  main: z.object({ temp: z.number(), feels_like: z.number(), humidity: z.number() }),
  weather: z.array(z.object({ main: z.string(), description: z.string() })).min(1),
  wind: z.object({ speed: z.number() }),
})

function readReport(body: unknown): WeatherReport | undefined {
  const parsed = OpenWeatherBody.safeParse(body)
  if (!parsed.success) return undefined
  const { main, weather, wind } = parsed.data
  return {
    temperature: oneDecimal(main.temp),
    condition: weather[0]?.main ?? '',
    description: weather[0]?.description ?? '',
    humidity: main.humidity,
    feels_like: oneDecimal(main.feels_like),
    wind_speed: wind.speed,
  }
}

function oneDecimal(value: number): number {
  return Math.round(value * 10) / 10
}
