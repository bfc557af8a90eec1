import { FunctionTool } from '@google/adk'
import { z } from 'zod'

import type { Weather } from '../weather/weather.ts'

export const WeatherRequest = z
  .object({
    location: z.string().min(1).max(200).describe('The city, in English: "Tokyo", "New York".'),
  })
  .describe('Gets the current weather of a city: temperature, condition, humidity and wind.')

/** Returns the weather. Runs on the server and needs no approval. */
export function createGetWeather(weather: Weather) {
  return new FunctionTool({
    name: 'get_weather',
    description: WeatherRequest.description ?? '',
    parameters: WeatherRequest,
    execute: ({ location }, context) => weather(location, context?.abortSignal),
  })
}
