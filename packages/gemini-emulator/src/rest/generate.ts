import type { EmulatorCore } from '../emulator-core.ts'
import type { CallMode, Prompt } from '../responders/responder.ts'
import type { FunctionDeclaration } from '../wire/content.ts'
import { modelNotFound } from '../wire/google-error.ts'
import { promptTokens, type TokenCount } from '../wire/text.ts'
import { checkContents, checkSignatures, checkTools, declaredFunctions } from './check-request.ts'
import { isGemini3, planResponse } from './plan-response.ts'
import { playResponse } from './play-response.ts'
import {
  readCountRequest,
  readGenerateRequest,
  type GenerateContentRequest,
} from './read-request.ts'
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
