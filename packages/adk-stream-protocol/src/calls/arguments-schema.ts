import type { BaseTool } from '@google/adk'
import type { Schema } from '@google/genai'
import { z } from 'zod'

import { isRecord } from '../protocol/guards.ts'

/**
 * The schema that the arguments of a tool must fit: the tool's own, or the one that it declares to the model, or that of the MCP
 * server behind it. Returns undefined for a tool without one, and for a schema that cannot be checked completely.
 */
export function readArgumentsSchema(tool: BaseTool): z.ZodType | undefined {
  // ADK keeps the schema of a FunctionTool to itself, and checks by it only when the tool runs: too late to tell the approver.
  const own: unknown = Reflect.get(tool, 'parameters')
  if (own instanceof z.ZodObject) return own
  const declared = readDeclared(tool)
  if (!isObjectSchema(declared)) return undefined
  try {
    // What the schema does not name is refused, unless it says that other properties are allowed.
    return z.fromJSONSchema({ additionalProperties: false, ...declared })
  } catch {
    // A keyword that zod does not know. Arguments that are checked only in part could be refused by the tool, or worse, taken.
    return undefined
  }
}

type JsonSchema = Exclude<Parameters<typeof z.fromJSONSchema>[0], boolean>

function readDeclared(tool: BaseTool): unknown {
  // ADK tells the model less than the schema of an MCP server says: it leaves out limits.
  const mcp: unknown = Reflect.get(tool, 'mcpTool')
  if (isRecord(mcp)) return mcp['inputSchema']
  // ADK's name for what a tool tells the model of itself.
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

/** Gemini's form of a schema as JSON Schema. */
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
    // Gemini writes every value of an enumeration as text, and every count.
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
