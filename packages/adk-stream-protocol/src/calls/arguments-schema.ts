import type { BaseTool } from '@google/adk'
import type { Schema } from '@google/genai'
import { z } from 'zod'

import type { ToolClaims } from '../approvals/approval.ts'
import { digestJson, plainJson } from '../approvals/digest.ts'
import { isRecord } from '../protocol/guards.ts'

/**
 * Returns the schema of the arguments of a tool: its own, the one that it declares to the model, or that of its MCP
 * server. Returns undefined if there is none, or if the schema cannot be checked completely.
 */
export function readArgumentsSchema(tool: BaseTool): z.ZodType | undefined {
  const known = SCHEMAS.get(tool)
  if (known) return known.schema
  const schema = createArgumentsSchema(tool)
  SCHEMAS.set(tool, { schema })
  return schema
}

/** The schemas by tool. A call is checked several times, and zod compiles a schema when it is used first. */
const SCHEMAS = new WeakMap<BaseTool, { readonly schema: z.ZodType | undefined }>()

function createArgumentsSchema(tool: BaseTool): z.ZodType | undefined {
  // ADK keeps the schema of a FunctionTool private and only applies it when the tool runs. That is too late to reject
  // edited arguments.
  const own: unknown = Reflect.get(tool, 'parameters')
  // Without `loose()` or `catchall()`, zod ignores unknown properties. The record would contain what the tool never receives.
  if (own instanceof z.ZodObject) return own.def.catchall ? own : own.strict()
  const declared = readDeclared(tool)
  if (!isObjectSchema(declared)) return undefined
  try {
    // Unknown properties are rejected, unless the schema allows them.
    return z.fromJSONSchema({ additionalProperties: false, ...declared })
  } catch {
    // zod does not support a keyword of the schema. After a partial check, the tool might reject the arguments, or
    // accept wrong ones.
    return undefined
  }
}

/** Whether arguments fit the schema of a tool. Returns undefined if they cannot be checked. */
export function fitsSchema(
  tool: BaseTool,
  args: Readonly<Record<string, unknown>>,
): boolean | undefined {
  return readArgumentsSchema(tool)?.safeParse(args).success
}

/**
 * Returns the JSON Schema of the arguments of a tool, for a form that edits them. Returns undefined if the arguments
 * cannot be edited.
 */
export function readArgumentsJsonSchema(tool: BaseTool): Record<string, unknown> | undefined {
  const schema = readArgumentsSchema(tool)
  if (!schema) return undefined
  try {
    const { $schema: _dialect, ...json } = z.toJSONSchema(schema, {
      io: 'input',
      unrepresentable: 'any',
    })
    return json
  } catch {
    // The form then derives its fields from the arguments.
    return undefined
  }
}

type JsonSchema = Exclude<Parameters<typeof z.fromJSONSchema>[0], boolean>

function readDeclared(tool: BaseTool): unknown {
  // ADK's declaration omits limits from the schema of an MCP server.
  const mcp: unknown = Reflect.get(tool, 'mcpTool')
  if (isRecord(mcp)) return mcp['inputSchema']
  // ADK's name for the declaration of a tool.
  // oxlint-disable-next-line no-underscore-dangle
  const declaration = tool._getDeclaration()
  return (
    declaration?.parametersJsonSchema ??
    (declaration?.parameters && toJsonSchema(declaration.parameters))
  )
}

function isObjectSchema(schema: unknown): schema is JsonSchema {
  return isRecord(schema) && schema['type'] === 'object' && isRecord(schema['properties'])
}

/** Converts Gemini's schema format to JSON Schema. */
function toJsonSchema(schema: Schema): JsonSchema {
  const { type, nullable, properties, items, anyOf, required, enum: values } = schema
  const name = type?.toLowerCase()
  const isNumeric = name === 'integer' || name === 'number'
  const plain: JsonSchema = {
    ...(name !== undefined && name !== 'type_unspecified' && { type: name as JsonType }),
    ...(properties && { properties: mapValues(properties, toJsonSchema) }),
    ...(items && { items: toJsonSchema(items) }),
    ...(anyOf && { anyOf: anyOf.map(toJsonSchema) }),
    ...(required && { required: [...required] }),
    // Gemini encodes enum values and counts as strings.
    ...(values && { enum: isNumeric ? values.map(Number) : [...values] }),
    ...limitsOf(schema),
  }
  return nullable ? { anyOf: [plain, { type: 'null' }] } : plain
}

type JsonType = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null' | 'integer'

function limitsOf(schema: Schema): JsonSchema {
  const { minimum, maximum, pattern } = schema
  const { minLength, maxLength, minItems, maxItems } = schema
  const limits = { minimum, maximum, minLength, maxLength, minItems, maxItems }
  const numbers = Object.entries(limits).flatMap(([name, limit]) =>
    limit === undefined ? [] : [[name, Number(limit)] as const],
  )
  return { ...Object.fromEntries(numbers), ...(pattern !== undefined && { pattern }) }
}

function mapValues<From, To>(
  record: Readonly<Record<string, From>>,
  map: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]))
}

/**
 * Returns the digest of what a tool says about itself, of what its MCP server says, and of where this server is. A tool that says something
 * else has another one, and so does the same tool of another server.
 */
export function digestDeclaration(tool: BaseTool, claims: ToolClaims | undefined): string {
  // ADK's name for the declaration of a tool. It omits limits from the schema of an MCP server, which ADK keeps private.
  // oxlint-disable-next-line no-underscore-dangle
  const declaration = tool._getDeclaration() ?? null
  const listed: unknown = Reflect.get(tool, 'mcpTool') ?? null
  const says = [tool.name, tool.description, declaration, listed, claims ?? null]
  return digestJson(plainJson('The declaration of the tool', [...says, ...readServer(tool)]))
}

/** Returns the URL of a tool's MCP server, or its command. Headers and variables are left out: tokens in them change. */
function readServer(tool: BaseTool): unknown[] {
  // ADK 2.0.0 keeps both private.
  const manager: unknown = Reflect.get(tool, 'mcpSessionManager')
  const connection = isRecord(manager) ? manager['connectionParams'] : undefined
  if (!isRecord(connection)) return []
  const { url, serverParams } = connection
  const program = isRecord(serverParams) ? [serverParams['command'], serverParams['args']] : []
  return [url ?? null, ...program.map((part) => part ?? null)]
}
