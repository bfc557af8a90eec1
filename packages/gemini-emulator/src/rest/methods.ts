import type { EmulatorCore } from '../emulator-core.ts'
import type { CallMode, Prompt } from '../responders/responder.ts'
import type { FunctionDeclaration } from '../wire/content.ts'
import { GoogleError, modelNotFound } from '../wire/google-error.ts'
import type { TokenCount } from '../wire/text.ts'
import { promptTokens } from '../wire/text.ts'
import type { GenerateContentRequest } from './read-request.ts'
import {
  checkContents,
  checkSignatures,
  checkTools,
  declaredFunctions,
  readCountRequest,
  readGenerateRequest,
} from './read-request.ts'
import { isGemini3, planResponse } from './plan-response.ts'
import { playResponse } from './play-response.ts'
import { createRenderer } from './render.ts'
import type { ResponseWriter } from './response-writer.ts'
import type { Route } from './route.ts'

/** A request and the objects that handle it. */
export interface Generation {
  readonly core: EmulatorCore
  readonly route: Route
  readonly body: unknown
  readonly writer: ResponseWriter
  readonly signal: AbortSignal
}

/** Handles `generateContent` and `streamGenerateContent`. */
export async function generate({ core, route, body, writer, signal }: Generation): Promise<void> {
  checkModel(route, core)
  const request = readGenerateRequest(body)
  checkContents(request.contents, 'GenerateContentRequest')
  checkTools(request)
  if (isGemini3(route.model)) checkSignatures(request.contents)

  const prompt = toPrompt(request, route.model)
  const actions = await core.respond(prompt)
  const renderer = createRenderer({
    model: route.model,
    responseId: core.newId(),
    prompt: countRequest(request),
    cachedTokens: request.cachedContent ? CACHED_TOKENS : 0,
  })
  const steps = planResponse(actions, prompt, core)
  await playResponse(steps, { core, writer, renderer, signal })
}

/** Handles `countTokens`. */
export function countTokens({ core, route, body, writer }: Generation): void {
  checkModel(route, core)
  const request = readCountRequest(body)
  checkContents(request.contents, 'CountTokensRequest')
  const { total, details } = countRequest(request)
  writer.body(JSON.stringify({ totalTokens: total, promptTokensDetails: details }))
}

function checkModel({ model, version, method }: Route, core: EmulatorCore): void {
  if (!core.hasModel(model)) throw modelNotFound(model, version, method)
}

function toPrompt(request: GenerateContentRequest, model: string): Prompt {
  const config = request.toolConfig?.functionCallingConfig
  const mode: CallMode =
    config?.mode === undefined || config.mode === 'MODE_UNSPECIFIED' ? 'AUTO' : config.mode
  return {
    mode: 'rest',
    model,
    systemInstruction: (request.systemInstruction?.parts ?? [])
      .map((part) => part.text ?? '')
      .join('\n'),
    contents: request.contents,
    functions: allowedFunctions(request, mode),
    includeThoughts: request.generationConfig?.thinkingConfig?.includeThoughts ?? false,
    callMode: mode,
  }
}

/** Returns the functions that the calling mode allows, so that responders need not check the mode. */
function allowedFunctions(
  request: GenerateContentRequest,
  mode: CallMode,
): readonly FunctionDeclaration[] {
  if (mode === 'NONE') return []
  const allowed = request.toolConfig?.functionCallingConfig?.allowedFunctionNames ?? []
  const declared = declaredFunctions(request)
  return allowed.length > 0 ? declared.filter(({ name }) => allowed.includes(name)) : declared
}

function countRequest(request: GenerateContentRequest): TokenCount {
  const { systemInstruction, contents } = request
  return promptTokens(
    systemInstruction ? [systemInstruction, ...contents] : contents,
    declaredFunctions(request),
  )
}

// The emulator has no caches. Every cache that a request names counts this many tokens.
const CACHED_TOKENS = 2048

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
