import type { EmulatorCore } from '../emulator-core.ts'
import { GoogleError } from '../wire/google-error.ts'
import type { Route } from './route.ts'

/** Returns a page of `models.list`. */
export function listModels({ query }: Route, core: EmulatorCore): string {
  const names = core.models.flatMap((known) =>
    typeof known === 'string' ? [known] : WELL_KNOWN.filter((name) => name.search(known) >= 0),
  )
  const size = Number(query.get('pageSize')) || 50
  const from = Number(query.get('pageToken')) || 0
  const next = from + size
  return JSON.stringify({
    models: [...new Set(names)].slice(from, next).map(describe),
    ...(next < names.length && { nextPageToken: String(next) }),
  })
}

/** Returns the response of `models.get`. */
export function getModel({ model, version }: Route, core: EmulatorCore): string {
  if (core.hasModel(model)) return JSON.stringify(describe(model))
  throw new GoogleError(404, `Model is not found: models/${model} for api version ${version}`)
}

function describe(name: string) {
  const live = /live|native-audio/.test(name)
  return {
    name: `models/${name}`,
    version: '001',
    displayName: name,
    description: 'A model of gemini-emulator.',
    inputTokenLimit: 1_048_576,
    outputTokenLimit: 65_536,
    supportedGenerationMethods: live
      ? ['countTokens', 'bidiGenerateContent']
      : ['generateContent', 'countTokens'],
    temperature: 1,
    topP: 0.95,
    topK: 64,
    maxTemperature: 2,
    thinking: true,
  }
}

const WELL_KNOWN = [
  'gemini-2.5-pro',
  'gemini-2.5-flash',
  'gemini-2.5-flash-lite',
  'gemini-2.5-flash-image',
  'gemini-2.5-flash-native-audio-preview-12-2025',
  'gemini-3-pro-preview',
  'gemini-3-flash-preview',
  'gemini-3.1-flash-live-preview',
  'gemini-3.8-live',
]
