import {
  BaseAgent,
  BaseNode,
  BasePlugin,
  BaseSessionService,
  BaseTool,
  BaseToolset,
} from '@google/adk'

import { isObject } from '../../protocol/guards.ts'

/** The base classes of what an application passes, with the symbols by which ADK recognises their instances. */
const BASES = [
  { Base: BaseAgent, brand: 'google.adk.baseAgent' },
  { Base: BaseNode, brand: 'google.adk.workflow.baseNode' },
  { Base: BaseTool, brand: 'google.adk.baseTool' },
  { Base: BaseToolset, brand: 'google.adk.baseToolset' },
  { Base: BasePlugin },
  { Base: BaseSessionService },
] as const

/**
 * Throws if a value is of another copy of `@google/adk` than the one that the bridge imports. ADK recognises most of its objects by
 * symbols, so that such a value seems to work, but nothing that depends on its class does.
 */
export function refuseOtherCopy(value: unknown, option: string): void {
  if (!isObject(value)) return
  for (const { Base, ...by } of BASES) {
    if (value instanceof Base) continue
    const Other = listClasses(value).find(({ name }) => name === Base.name)
    const isBranded = 'brand' in by && Reflect.get(value, Symbol.for(by.brand)) === true
    if (!Other && !isBranded) continue
    const theirs = Other && locate(Other)
    const ours = locate(Base)
    throw new TypeError(
      `createBridge: there are two copies of @google/adk. ${describe(value, option)} is of ${theirs ?? 'another copy'}, and the bridge uses ${ours ?? 'its own'}. Install one version in one place (\`npm ls @google/adk\` lists them; \`npm dedupe\`, or \`overrides\` in package.json), and load it in one way: \`import\`, not \`require\`.`,
    )
  }
}

type Class = abstract new (...args: never) => unknown

/** Returns the class of a value and its base classes. */
function listClasses(value: object): Class[] {
  const classes: Class[] = []
  for (
    let prototype: unknown = Reflect.getPrototypeOf(value);
    isObject(prototype);
    prototype = Reflect.getPrototypeOf(prototype)
  )
    // A prototype has the class that it belongs to.
    if (typeof prototype['constructor'] === 'function')
      classes.push(prototype['constructor'] as unknown as Class)
  return classes
}

function describe(value: Record<string, unknown>, option: string): string {
  const [own] = listClasses(value)
  const name = typeof value['name'] === 'string' ? ` ${value['name']}` : ''
  return `The ${own?.name ?? 'object'}${name} in \`${option}\``
}

/** Returns the folder that a class of ADK was loaded from. Its code is run up to the first value that it touches, which has the path in its stack. */
function locate(Base: Class): string | undefined {
  let stack: string | undefined
  const stop = (): never => {
    const stopped = new Error('This value only tells where it is used.')
    stack ??= stopped.stack
    throw stopped
  }
  const probe: object = new Proxy({}, { get: stop, set: stop, has: stop, ownKeys: stop })
  const Probe = Object.assign(function Probed() {}, { prototype: probe })
  const prototype = Base.prototype as object
  const methods = Object.getOwnPropertyNames(prototype).flatMap((name) => {
    const method: unknown = Object.getOwnPropertyDescriptor(prototype, name)?.value
    return typeof method === 'function' && name !== 'constructor' ? [method] : []
  })
  const attempts = [
    () => Reflect.construct(Base as unknown as new () => unknown, [probe], Probe) as unknown,
    ...methods.map((method) => () => Reflect.apply(method, probe, [probe]) as unknown),
  ]
  for (const attempt of attempts) {
    try {
      const result = attempt()
      // An asynchronous method rejects with what it has touched.
      if (result instanceof Promise) result.catch(() => undefined)
    } catch {
      // Expected: the probe stops the code.
    }
    if (stack !== undefined) break
  }
  return stack
    ?.split('\n')
    .map((line) => /(?:file:\/\/)?((?:\/|[A-Za-z]:)[^()]*?):\d+:\d+\)?$/.exec(line)?.[1])
    .find((file) => file !== undefined && !file.includes('adk-copies'))
    ?.replace(/(?<=[\\/]dist[\\/](?:esm|cjs|web))[\\/].*/, '')
}
