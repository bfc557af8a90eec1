import { AdkProvider } from 'adk-stream-protocol/react'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'

import { ja } from '../src/page/i18n/ja.ts'
import { sampleWeather } from '../src/agent/weather/weather.ts'
import { renderCall } from '../src/page/weather-card.tsx'

const REPORT = {
  temperature: 18,
  condition: 'Cloudy',
  description: 'cloudy',
  humidity: 65,
  feels_like: 17,
  wind_speed: 3.1,
  note: 'Sample data.',
}

const PLACE = { location: 'Tokyo' }

function show(output: unknown, toolName = 'get_weather', input: object = PLACE): string {
  const call = {
    type: 'dynamic-tool' as const,
    toolName,
    toolCallId: 'call-1',
    state: 'output-available' as const,
    input,
    output,
  }
  const card = renderCall(toolName, call)
  if (card === undefined) return ''
  const markup = renderToStaticMarkup(createElement(AdkProvider, null, card))
  return markup.replaceAll(/<svg[^]*?<\/svg>/g, '[icon]').replaceAll(/<[^>]*>/g, ' ')
}

test('[DM630] the weather is shown with an icon, the temperature, the condition and the place', () => {
  const text = show(REPORT).replaceAll(/\s+/g, ' ')
  expect(text).toContain('Tokyo')
  expect(text).toContain('[icon] 18 °C Cloudy Feels like 17 °C · Humidity 65% · Wind 3.1 m/s')
  expect(text).toContain('Sample data')
})

test('[DM630] a report without a temperature, a failure and other tools have the default card', () => {
  expect(show({ error: 'The weather service cannot be reached.', location: 'Tokyo' })).toBe('')
  expect(show({ condition: 'Cloudy' })).toBe('')
  expect(show(REPORT, 'other')).toBe('')
})

test('[DM691] the card of the music names the track', () => {
  const text = show({ success: true, track: 2 }, 'change_bgm', { track: 2 })
  expect(text.replaceAll(/\s+/g, ' ')).toContain('Track 2')
})

test('[DM630] each condition of the sample weather has a name in Japanese', async () => {
  const places = ['Tokyo', 'San Francisco', 'London', 'New York', ...Array.from('abcdefghijklmnop')]
  const reports = await Promise.all(places.map((place) => sampleWeather(place)))
  const conditions = reports.flatMap((report) => ('condition' in report ? [report.condition] : []))
  expect(new Set(conditions).size).toBe(6)
  for (const condition of conditions)
    expect(ja.weather.conditions[condition.toLowerCase()]).toMatch(
      /^[\p{sc=Han}\p{sc=Hiragana}]+$/u,
    )
})
