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

/** Sample weather without a key or a network. A place always has the same weather, and the report says that it is a sample. */
export const sampleWeather: Weather = (location) => {
  const name = location.trim().toLowerCase()
  return Promise.resolve(KNOWN.get(NAMES.get(name) ?? name) ?? inventFor(name))
}

const NOTE = 'Sample data. Set OPENWEATHER_API_KEY for the real weather.'

const KNOWN = new Map<string, WeatherReport>([
  ['tokyo', report('Cloudy', { temperature: 18, humidity: 65, wind_speed: 3.1 })],
  ['san francisco', report('Foggy', { temperature: 15, humidity: 80, wind_speed: 5.2 })],
  ['london', report('Rainy', { temperature: 12, humidity: 85, wind_speed: 6.4 })],
  ['new york', report('Sunny', { temperature: 10, humidity: 50, wind_speed: 4.3 })],
])

const NAMES = new Map([
  ['東京', 'tokyo'],
  ['サンフランシスコ', 'san francisco'],
  ['ロンドン', 'london'],
  ['ニューヨーク', 'new york'],
])

const SKIES = ['Sunny', 'Partly cloudy', 'Cloudy', 'Rainy', 'Windy'] as const

function inventFor(name: string): WeatherReport {
  const seed = Array.from(name).reduce(
    (sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9973,
    7,
  )
  return report(SKIES[seed % SKIES.length] ?? 'Sunny', {
    temperature: 8 + (seed % 19),
    humidity: 40 + (seed % 47),
    wind_speed: 1 + (seed % 70) / 10,
  })
}

function report(
  condition: string,
  figures: Pick<WeatherReport, 'temperature' | 'humidity' | 'wind_speed'>,
): WeatherReport {
  const chill = figures.wind_speed > 4 ? 2 : 1
  return {
    ...figures,
    condition,
    description: condition.toLowerCase(),
    feels_like: figures.temperature - chill,
    note: NOTE,
  }
}
