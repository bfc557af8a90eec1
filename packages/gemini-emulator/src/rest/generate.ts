import type { CallMode, Prompt } from '../mind.ts'
import type { FunctionDeclaration } from '../wire/content.ts'
import { modelNotFound } from '../wire/google-error.ts'
import type { GenerateContentRequest } from '../wire/requests.ts'
import { promptTokens, type TokenCount } from '../wire/tokens.ts'
import type { World } from '../world.ts'
import { checkContents, checkSignatures } from './check-contents.ts'
import { checkTools, declaredFunctions } from './check-tools.ts'
import { isGemini3, planSteps } from './plan.ts'
import { playSteps } from './play.ts'
import { readCountRequest, readGenerateRequest } from './read-request.ts'
import { createRenderer } from './render.ts'
import type { Reply } from './reply.ts'
import type { Route } from './route.ts'

export interface Generation {
  readonly world: World
  readonly route: Route
  readonly body: unknown
  readonly reply: Reply
  readonly signal: AbortSignal
}

/** Answers `generateContent` and `streamGenerateContent`. */
export async function generate({ world, route, body, reply, signal }: Generation): Promise<void> {
  refuseUnknownModel(route, world)
  const request = readGenerateRequest(body)
  checkContents(request.contents, 'GenerateContentRequest')
  checkTools(request)
  if (isGemini3(route.model)) checkSignatures(request.contents)

  const prompt = promptOf(request, route.model)
  const acts = await world.think(prompt)
  const renderer = createRenderer({
    model: route.model,
    responseId: world.newId(),
    prompt: countRequest(request),
    cachedTokens: request.cachedContent ? CACHED_TOKENS : 0,
  })
  const steps = planSteps(acts, prompt, world)
  await playSteps(steps, { world, reply, renderer, signal })
}

/** Answers `countTokens`. */
export function countTokens({ world, route, body, reply }: Generation): void {
  refuseUnknownModel(route, world)
  const request = readCountRequest(body)
  checkContents(request.contents, 'CountTokensRequest')
  const { total, details } = countRequest(request)
  reply.body(JSON.stringify({ totalTokens: total, promptTokensDetails: details }))
}

function refuseUnknownModel({ model, version, method }: Route, world: World): void {
  if (!world.hasModel(model)) throw modelNotFound(model, version, method)
}

function promptOf(request: GenerateContentRequest, model: string): Prompt {
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
    functions: offeredFunctions(request, mode),
    includeThoughts: request.generationConfig?.thinkingConfig?.includeThoughts ?? false,
    callMode: mode,
  }
}

/** The functions the model may really call, so that no mind has to know about modes. */
function offeredFunctions(
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

// The emulator keeps no caches: each one named is taken to exist and to hold this much.
const CACHED_TOKENS = 2048
