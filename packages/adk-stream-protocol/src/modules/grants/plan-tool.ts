import { BaseTool } from '@google/adk'
import type { FunctionDeclaration } from '@google/genai'

import { readArgumentsJsonSchema } from '../../calls/arguments-schema.ts'

interface PlanToolOptions {
  /** The tools whose calls can be part of a plan, if the policy lets them (`plans`). */
  readonly tools: readonly BaseTool[]
  /** Default: `propose_plan`. */
  readonly name?: string
}

/** How many calls a plan has at most. */
export const MAX_STEPS = 20

/**
 * A tool with which a model proposes several calls before it makes them: `{ steps: [{ tool, args }] }`. A person approves them together.
 * Each of these calls then runs once without asking, with exactly these arguments.
 */
export function planTool(options: PlanToolOptions): BaseTool {
  return new PlanTool(options)
}

/** The bridge that runs the agent runs this tool. */
export class PlanTool extends BaseTool {
  /** By name. */
  readonly tools: ReadonlyMap<string, BaseTool>

  constructor({ tools, name = 'propose_plan' }: PlanToolOptions) {
    if (tools.length === 0) throw new TypeError('planTool needs `tools`, at least one.')
    const names = tools.map((tool) => tool.name).join(', ')
    super({
      name,
      description: `Proposes several calls of these tools to the person, before you make them: ${names}. If the person approves, make the calls with exactly the same arguments. If only one call is needed, make it directly.`,
    })
    this.tools = new Map(tools.map((tool) => [tool.name, tool]))
  }

  override _getDeclaration(): FunctionDeclaration {
    const { name, description } = this
    const steps = [...this.tools.values()].map((tool) => ({
      type: 'object',
      properties: {
        tool: { type: 'string', enum: [tool.name] },
        args: readArgumentsJsonSchema(tool) ?? { type: 'object' },
      },
      required: ['tool', 'args'],
      additionalProperties: false,
    }))
    const [only] = steps
    const items = steps.length === 1 ? only : { anyOf: steps }
    const parametersJsonSchema = {
      type: 'object',
      properties: { steps: { type: 'array', minItems: 1, maxItems: MAX_STEPS, items } },
      required: ['steps'],
    }
    return { name, description, parametersJsonSchema }
  }

  /** A person decides every plan, also where no policy names this tool. */
  override checkRequireConfirmation(): Promise<boolean> {
    return Promise.resolve(true)
  }

  override runAsync(): Promise<unknown> {
    return Promise.reject(new TypeError(`The tool ${this.name} runs only behind createBridge.`))
  }
}
