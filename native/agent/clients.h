/* Modules that include etmem.h, which is where the agent finds their pointers to the table. */
#pragma once

namespace etmem::clients {

/* Gives every loaded module the table: one that looked for it before the agent came would not look again. */
void tell();

}  // namespace etmem::clients
