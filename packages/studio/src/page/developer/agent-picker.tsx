import { useId, useState } from 'react'

import { useLabels } from '../i18n/language.tsx'
import { newChatAgents } from '../wire/wire.ts'
import { useStudio } from '../wire/studio-info.ts'

/** Selects the agent of an empty chat. Shows nothing if there is only one. */
export function AgentPicker({ chatId }: { readonly chatId: string }) {
  const { agents: labels } = useLabels().shell
  const id = useId()
  const agents = useStudio()?.agents ?? []
  const [name, setName] = useState(() => newChatAgents.get(chatId))
  const [first] = agents
  if (agents.length < 2 || !first) return null
  const chosen = agents.find((agent) => agent.name === name) ?? first
  const choose = (picked: string): void => {
    newChatAgents.set(chatId, picked)
    setName(picked)
  }
  return (
    <div className="agent-picker">
      <label htmlFor={id}>{labels.choose}</label>
      <select
        id={id}
        value={chosen.name}
        aria-describedby={`${id}-text`}
        onChange={({ target }) => choose(target.value)}
      >
        {agents.map((agent) => (
          <option key={agent.name}>{agent.name}</option>
        ))}
      </select>
      <p id={`${id}-text`}>{chosen.description}</p>
    </div>
  )
}
