import { createServer, type RequestListener } from 'node:http'

import { expect, test } from 'vitest'

import { createOpenWeather } from '../src/agent/weather/open-weather.ts'
import { sampleWeather } from '../src/agent/weather/weather.ts'
import { createTtlCache } from '../src/agent/weather/ttl-cache.ts'

const KEY = 'key-of-the-weather'

test.each([
  ['Tokyo', { temperature: 18, condition: 'Cloudy', humidity: 65 }],
  ['東京', { temperature: 18, condition: 'Cloudy', humidity: 65 }],
  [' san francisco ', { temperature: 15, condition: 'Foggy', humidity: 80 }],
  ['London', { temperature: 12, condition: 'Rainy', humidity: 85 }],
  ['New York', { temperature: 10, condition: 'Sunny', humidity: 50 }],
])('[DM6] %s has its sample weather', async (place, figures) => {
  const report = await sampleWeather(place)
  expect(report).toMatchObject(figures)
  expect(report).toHaveProperty('note', expect.stringContaining('Sample data'))
})

test('[DM6] other places have different weather, which stays the same', async () => {
  const oslo = await sampleWeather('Oslo')
  expect(await sampleWeather('oslo')).toEqual(oslo)
  expect(await sampleWeather('大阪')).not.toEqual(oslo)
})

test('[DM7] reads the report of OpenWeatherMap', async () => {
  await using service = await serve((_, response) => response.end(JSON.stringify(BODY)))
  const weather = createOpenWeather({ apiKey: KEY, baseUrl: service.url })

  expect(await weather('São Paulo')).toEqual({
    temperature: 17.3,
    condition: 'Clouds',
    description: 'broken clouds',
    humidity: 64,
    feels_like: 16.9,
    wind_speed: 3.6,
  })
  const asked = new URL(service.requests[0] ?? '', service.url)
  expect(Object.fromEntries(asked.searchParams)).toEqual({
    q: 'São Paulo',
    units: 'metric',
    appid: KEY,
  })
})

test('[DM7] reuses a report until it is too old', async () => {
  await using service = await serve((_, response) => response.end(JSON.stringify(BODY)))
  let clock = 0
  const weather = createOpenWeather({
    apiKey: KEY,
    baseUrl: service.url,
    ttlMs: 1000,
    now: () => clock,
  })
  expect(await weather('Tokyo')).not.toHaveProperty('cached')
  clock = 999
  expect(await weather(' tokyo')).toHaveProperty('cached', true)
  clock = 1000
  expect(await weather('Tokyo')).not.toHaveProperty('cached')
  expect(service.requests).toHaveLength(2)
})

test('[DM7] keeps the reports of a bounded number of places, the newest', () => {
  const cache = createTtlCache<number>({ ttlMs: 1000, capacity: 2, now: () => 0 })
  cache.set('a', 1)
  cache.set('b', 2)
  cache.set('a', 3)
  cache.set('c', 4)
  expect(['a', 'b', 'c'].map((key) => cache.get(key))).toEqual([3, undefined, 4])
})

test.each<[string, RequestListener, string]>([
  [
    'an unknown place',
    (_, response) => response.writeHead(404).end('{"message":"city not found"}'),
    'The weather service does not know this place.',
  ],
  [
    'a refused key',
    (_, response) => response.writeHead(401).end(`{"message":"Invalid API key ${KEY}"}`),
    'The weather service answered with status 401.',
  ],
  [
    'a body that is not JSON',
    (_, response) => response.end('<html>'),
    'The weather service cannot be reached.',
  ],
  [
    'a body of another shape',
    (_, response) => response.end('{"main":null}'),
    'The weather service sent an unknown format.',
  ],
  [
    'a cut connection',
    (request) => request.socket.destroy(),
    'The weather service cannot be reached.',
  ],
  ['silence', () => undefined, 'The weather service did not answer in time.'],
])('[DM8] reports %s to the model, without the API key', async (_, listener, error) => {
  await using service = await serve(listener)
  const weather = createOpenWeather({ apiKey: KEY, baseUrl: service.url, timeoutMs: 200 })
  expect(await weather('Tokyo')).toEqual({ error, location: 'Tokyo' })
})

test('[DM8] a failure is not reused', async () => {
  let failing = true
  await using service = await serve((_, response) => {
    if (failing) response.writeHead(503).end()
    else response.end(JSON.stringify(BODY))
  })
  const weather = createOpenWeather({ apiKey: KEY, baseUrl: service.url })
  expect(await weather('Tokyo')).toHaveProperty('error')
  failing = false
  expect(await weather('Tokyo')).toMatchObject({ temperature: 17.3 })
})

const BODY = {
  weather: [{ id: 803, main: 'Clouds', description: 'broken clouds', icon: '04d' }],
  main: { temp: 17.26, feels_like: 16.88, pressure: 1016, humidity: 64 },
  wind: { speed: 3.6, deg: 80 },
}

async function serve(listener: RequestListener) {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    listener(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
