import type { BaseTool } from '@google/adk'

import type { ToolClaims } from '../approvals/approval.ts'
import { readAnnotations } from '../approvals/approval.ts'
import { isRecord } from '../protocol/guards.ts'

/** Returns what an MCP server claims about a tool, or undefined if the tool does not come from an MCP server. */
export function readToolClaims(tool: BaseTool): ToolClaims | undefined {
  // ADK 2.0.0 keeps the tool as its server listed it, and the name without the prefix, private.
  const listed: unknown = Reflect.get(tool, 'mcpTool')
  if (!isRecord(listed)) return undefined
  const server = readPrefix(tool.name, Reflect.get(tool, 'originalName'))
  const annotations = isRecord(listed['annotations']) ? listed['annotations'] : {}
  const title = [listed['title'], annotations['title']].find(isTitle)
  return {
    ...(server !== undefined && { server }),
    ...(title !== undefined && { title }),
    annotations: readAnnotations(annotations),
  }
}

/** Longer titles are ignored. */
const MAX_TITLE = 200

function isTitle(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= MAX_TITLE
}

/** ADK joins the prefix of a toolset and the name of a tool with `_`. */
function readPrefix(name: string, originalName: unknown): string | undefined {
  const ending = `_${String(originalName)}`
  return name.length > ending.length && name.endsWith(ending)
    ? name.slice(0, -ending.length)
    : undefined
}
