import { z } from 'zod'

import { Content, Tool } from './content.ts'

const FunctionCallingConfig = z.looseObject({
  mode: z.enum(['MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED']).optional(),
  allowedFunctionNames: z.array(z.string()).optional(),
})

export const GenerateContentRequest = z.looseObject({
  contents: z.array(Content).default([]),
  systemInstruction: Content.optional(),
  tools: z.array(Tool).default([]),
  toolConfig: z.looseObject({ functionCallingConfig: FunctionCallingConfig.optional() }).optional(),
  generationConfig: z
    .looseObject({
      thinkingConfig: z.looseObject({ includeThoughts: z.boolean().optional() }).optional(),
    })
    .optional(),
  cachedContent: z.string().optional(),
})
export type GenerateContentRequest = z.infer<typeof GenerateContentRequest>

export const CountTokensRequest = z.looseObject({
  contents: z.array(Content).default([]),
  generateContentRequest: GenerateContentRequest.optional(),
})
export type CountTokensRequest = z.infer<typeof CountTokensRequest>
