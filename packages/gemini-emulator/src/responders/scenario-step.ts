import { z } from 'zod'

import type { Action } from './responder.ts'
import { solidImage } from './solid-image.ts'
import { isObject } from '../wire/proto-json.ts'

const ms = z.number().int().min(0)
const words = z.string().min(1)
const pieces = z.array(z.string()).optional()

const STEPS = {
  say: z
    .strictObject({ say: words, pieces })
    .transform(({ say, ...rest }) => ({ type: 'say', text: say, ...defined(rest) })),
  think: z
    .strictObject({ think: words, pieces })
    .transform(({ think, ...rest }) => ({ type: 'think', text: think, ...defined(rest) })),
  call: z
    .strictObject({
      call: words,
      args: z.record(z.string(), z.unknown()).default({}),
      id: words.optional(),
      separate: z.boolean().optional(),
    })
    .transform(({ call, args, ...rest }) => ({ type: 'call', name: call, args, ...defined(rest) })),
  image: z.strictObject({ image: words, mimeType: words.optional() }).transform(toImage),
  code: z
    .strictObject({
      code: words,
      output: z.string().default(''),
      outcome: words.default('OUTCOME_OK'),
      language: words.default('PYTHON'),
    })
    .transform((step) => ({ type: 'code', ...step })),
  ground: z
    .strictObject({ ground: z.array(z.strictObject({ uri: z.url(), title: words })).min(1) })
    .transform(({ ground }) => ({ type: 'ground', sources: ground })),
  pause: z.strictObject({ pause: ms }).transform(({ pause }) => ({ type: 'pause', ms: pause })),
  pace: z.strictObject({ pace: ms }).transform(({ pace }) => ({ type: 'pace', ms: pace })),
  wait: z.strictObject({ wait: words }).transform(({ wait }) => ({ type: 'wait', gate: wait })),
  finish: z
    .strictObject({ finish: words })
    .transform(({ finish }) => ({ type: 'finish', reason: finish })),
  block: z
    .strictObject({ block: words, usage: z.literal(false).optional() })
    .transform(({ block, usage }) => ({
      type: 'block',
      reason: block,
      ...(usage === false && { usage }),
    })),
  fail: z
    .strictObject({
      fail: z.number().int().min(400).max(599),
      message: z.string().default(''),
      retryAfterSeconds: z.number().min(0).optional(),
    })
    .transform(({ fail, message, ...rest }) => ({
      type: 'fail',
      status: fail,
      message,
      ...defined(rest),
    })),
  drop: z.strictObject({ drop: z.literal(true) }).transform(() => ({ type: 'drop' })),
  close: z
    .strictObject({ close: z.number().int().min(1000).max(4999), reason: z.string().default('') })
    .transform(({ close, reason }) => ({ type: 'close', code: close, reason })),
  'go-away': z
    .strictObject({ 'go-away': ms })
    .transform((step) => ({ type: 'go-away', timeLeftMs: step['go-away'] })),
  cancel: z.strictObject({ cancel: z.literal(true) }).transform(() => ({ type: 'cancel' })),
  raw: z.strictObject({ raw: z.unknown() }).transform(({ raw }) => ({ type: 'raw', message: raw })),
} satisfies Readonly<Record<string, z.ZodType<Action>>>

/** A step of a scenario: a text to say, or an object with exactly one of the step names. */
export type StepInput = string | z.input<(typeof STEPS)[keyof typeof STEPS]>

/**
 * Reads a step. The step name selects the schema, so that an error refers to that step and not to all of them.
 */
export const ScenarioStep = z
  .custom<StepInput>((value) => typeof value === 'string' || isObject(value), {
    error: 'a step must be a text or an object such as {say: Hello}',
  })
  .transform((value, context): Action => {
    if (typeof value === 'string') return { type: 'say', text: value }
    const step = Object.entries(STEPS).find(([name]) => Object.hasOwn(value, name))?.[1]
    if (!step) {
      const keys = Object.keys(value).join(', ')
      const known = Object.keys(STEPS).join(', ')
      context.addIssue({
        code: 'custom',
        message: `unknown step ${keys}; use one of ${known}`,
      })
      return z.NEVER
    }
    const parsed: z.ZodSafeParseResult<Action> = step.safeParse(value)
    if (parsed.success) return parsed.data
    for (const { path, message } of parsed.error.issues) {
      context.addIssue({ code: 'custom', path: [...path], message })
    }
    return z.NEVER
  })

/** A colour (`red`, `#ff8800`), or base64 with its `mimeType`. */
function toImage(
  { image, mimeType }: { image: string; mimeType?: string | undefined },
  context: z.RefinementCtx,
): Action {
  if (mimeType !== undefined) return { type: 'image', mimeType, data: image }
  const data = solidImage(image)
  if (data !== undefined) return { type: 'image', mimeType: 'image/png', data }
  context.addIssue({
    code: 'custom',
    path: ['image'],
    message: 'image must be a colour such as red or #ff8800, or base64 with a mimeType',
  })
  return z.NEVER
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> }

function defined<T extends object>(fields: T): Defined<T> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  // Only entries with the value undefined were removed.
  return Object.fromEntries(entries) as Defined<T>
}
